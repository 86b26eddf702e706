/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pools that a program names by their place: those of a device, and those of the host. The host
 * has one for each type of location. NUMA nodes share theirs.
 */
#pragma once

#include "client_pool.h"

/* Called once while attaching. */
void pool_places_init(void);

/* A pool is about to be destroyed: false if it is a default one of the host, which stays. */
bool pool_places_leave(uint64_t pool);
