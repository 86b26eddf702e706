/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device's side of an area (managed_area.h): granules one behind the other, the chunks of
 * managed_exchange.h. Each is memory of the device, or of the host in its place.
 *
 * The functions wait for the server and are called without any lock.
 */
#pragma once

#include <stdbool.h>

#include "heap.h"

/* Makes the chunks of an area. Of an area of several chunks, the device takes what it has capacity
 * for, after `trim` has given back unused memory. The host takes the rest. A smaller area is hosted
 * whole or not at all. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult chunks_create(const struct heap *heap, bool hosted, uint64_t size, void (*trim)(void),
                       uint64_t *ret_address);

/* Gives them back. */
void chunks_release(uint64_t address, uint64_t size);

/* Shows them to a new server. No other thread is inside. Returns the server's error. */
CUresult chunks_replay(const struct heap *heap, uint64_t address, uint64_t size);
