/* SPDX-License-Identifier: Apache-2.0 */
/* Variables of modules, which lie outside the window, wherever the driver has put them. */
#pragma once

#include "address_map.h"

/* Called once while attaching. */
void variables_init(void);

/* Enters a variable. It stays the caller's, who keeps it until it has been removed. All of these
 * take client->lock for a moment. */
void variable_add(struct allocation *variable);
void variable_remove(uint64_t address);

/* A copy of the variable that contains an address: false when none does. */
bool variable_find(uint64_t address, struct allocation *ret_variable);
