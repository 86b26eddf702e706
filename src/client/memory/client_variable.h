/* SPDX-License-Identifier: Apache-2.0 */
/* Variables of modules, which lie outside the window, wherever the driver has put them. */
#pragma once

#include <stdatomic.h>

#include "address_map.h"

extern _Atomic unsigned variable_count; /* atomic: changed with client->lock, read without */

/* Called once while attaching. */
void variables_init(void);

/* Enters a variable. It stays the caller's, who keeps it until it has been removed. All of these
 * take client->lock for a moment. */
void variable_add(struct allocation *variable);
void variable_remove(uint64_t address);

/* The part of variable_find() that takes client->lock: for variable_find() alone. */
bool variable_find_slowly(uint64_t address, struct allocation *ret_variable);

/* A copy of the variable that contains an address: false when none does. A call need not see a
 * variable that another thread adds at the same time. */
static inline bool variable_find(uint64_t address, struct allocation *ret_variable)
{
    return atomic_load_explicit(&variable_count, memory_order_relaxed) &&
           variable_find_slowly(address, ret_variable);
}
