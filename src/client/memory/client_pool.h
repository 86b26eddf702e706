/* SPDX-License-Identifier: Apache-2.0 */
/* Stream-ordered allocation: pools, and blocks that wait for their fence. */
#pragma once

#include "client_stream.h"

struct allocation;

/* Called once while attaching: 0, or -1 when there is no memory for it. */
int pool_init(void);

/* Whether memory of a pool is only kept until work has passed its free. */
bool pool_was_freed(const struct allocation *allocation);

/* Gives a block of the device's heap, which is of no pool, back behind a fence. The block stays
 * taken without memory for the record. */
void pool_give(const struct allocation *allocation, struct fence fence);

/* Frees an allocation that heap_give() returned, and subtracts it from its pool. NULL is allowed.
 */
void pool_end(struct allocation *allocation);
