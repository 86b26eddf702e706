/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that were freed on a stream, and that earlier work may use until their fence has passed.
 * memory_free_pending() gives those back whose fence has (client_memory.h).
 */
#pragma once

#include "client_stream.h"

struct allocation;

/* Called once while attaching. */
void pool_pending_init(void);

/* Takes a block of the same pool, stream and size: it is ready without any fence. */
bool pool_pending_take(uint64_t pool, uint64_t stream, uint64_t size, uint64_t *ret_address);

/* Whether cuMemFreeAsync() has put off the free of the memory at an address. */
bool pool_is_pending(uint64_t address);

/* cuMemFreeAsync() for memory of a device's heap: it is given back behind the work on the stream.
 * CUDA_ERROR_INVALID_VALUE when that is pending already. */
CUresult pool_give_async(const struct allocation *allocation, struct stream *stream);

/* Gives a block of the device's heap, which is of no pool, back behind a fence. The block stays
 * taken without memory for the record. */
void pool_give(const struct allocation *allocation, struct fence fence);
