/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Staging slots: 1 MiB chunks of memory that the GPU reaches, through which copies of pageable
 * memory go. A slot is its taker's until it is given back with a fence, and another's when that
 * fence has passed. From any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client_fence.h"

/* Called once while attaching. */
void staging_init(void);

/* A slot that may be written; waits for one, and for its fence. The error of a fence that will
 * never pass. The caller holds no slot: two such threads could wait for each other. */
CUresult staging_take(unsigned *ret_slot);

/* Only if that needs no waiting. */
bool staging_try_take(unsigned *ret_slot);

/* `fence` may be NULL: nothing on the device uses the slot. */
void staging_give(unsigned slot, const struct fence *fence);

/* Its address, for the program and for the GPU. */
uint64_t staging_address(unsigned slot);
