/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device's side of an area (managed_area.h): granules one behind the other, the pieces of
 * managed_exchange.h. Each is memory of the device, or of the host in its place.
 *
 * The functions wait for the server and are called without any lock.
 */
#pragma once

#include <stdbool.h>

#include "heap.h"

/* Makes the pieces of an area. Of one that is larger than a piece, what the device has no room for,
 * even after `trim` has given back what nobody uses, is hosted; of others all is hosted, or
 * nothing. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult pieces_create(const struct heap *heap, bool hosted, uint64_t size, void (*trim)(void),
                       uint64_t *ret_address);

/* Gives them back. */
void pieces_release(uint64_t address, uint64_t size);

/* Shows them to a new server. No other thread is inside. Returns the server's error. */
CUresult pieces_replay(const struct heap *heap, uint64_t address, uint64_t size);
