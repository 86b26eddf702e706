/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reserved addresses, physical memory and mappings on their way to another server. Each allocation
 * has a descriptor, which keeps the memory when the server that made it ends.
 */
#pragma once

#include <stdbool.h>

#include "cuda_result.h"

struct physical;

/* Whether another server can take it over: the client has its descriptor. The second of all. */
bool vmm_physical_can_move(const struct physical *physical);
bool vmm_is_whole(void);

/* Gives up the memory that the client was lent. With the library closed. */
void vmm_give_up(void);

/* With the library closed: makes all of it again where it was, or CUDA_ERROR_MAP_FAILED if another
 * client has got these addresses meanwhile. */
CUresult vmm_replay(void);
