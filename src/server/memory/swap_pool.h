/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host memory of a server for the contents of device memory that has been taken from its
 * clients. It is made by the driver, page-locked and mapped for all devices. Its chunks are used
 * again, because making one takes longer than copying into it. No client ever has a descriptor of
 * it. The quota swap-memory bounds it.
 *
 * Functions may be called from any thread, in a context.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "device.h"
#include "reserve_area.h"

/* A copy consists of segments in one chunk each; all but the last have the size of a chunk. */
#define SWAP_CHUNK (64ull << 20)
#define SWAP_SLOT (2ull << 20)
#define SWAP_CHUNKS_MAX (1u << 14)

struct swap_chunk {
    CUmemGenericAllocationHandle handle;
    uint64_t address; /* 0 = there is none at this place */
    uint32_t used;    /* bit s: slot s */
    bool is_made;     /* it is about to be there */
};

struct swap_pool {
    pthread_mutex_t lock;
    const struct devices *devices;
    struct reserve_area *area;
    struct swap_chunk chunks[SWAP_CHUNKS_MAX];
    unsigned places; /* chunks up to there have been made at some time */
    atomic_uint_fast64_t bytes, used,
        kept; /* of all chunks, in copies, and in copies that are kept */
};

/* Before any other thread uses it. The devices and the area stay the caller's. */
void swap_pool_init(struct swap_pool *pool, const struct devices *devices,
                    struct reserve_area *area);

/* Takes `size` bytes, at most SWAP_CHUNK, of a chunk that there is. False: none has them. */
bool swap_pool_take_made(struct swap_pool *pool, uint64_t size, uint64_t *ret_address);

/* The same, or of a new chunk near `device`, whose context is current. CUDA_ERROR_OUT_OF_MEMORY
 * beyond the quota; or what the driver says. */
CUresult swap_pool_take(struct swap_pool *pool, const struct device *device, uint64_t size,
                        uint64_t *ret_address);
void swap_pool_give(struct swap_pool *pool, uint64_t address, uint64_t size);

/* Counts bytes that have been taken as kept ones, which do not count as used, or as used again. */
void swap_pool_keep(struct swap_pool *pool, uint64_t size, bool kept);

/* Makes one chunk more unless that many bytes are unused. False when nothing was made, because
 * there are enough, or the quota or the machine's memory allows no more. */
bool swap_pool_lock_ahead(struct swap_pool *pool, const struct device *device, uint64_t unused);

/* Releases chunks that no copy uses. */
void swap_pool_trim(struct swap_pool *pool);
