/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is counted of a memory pool, and its settings. A pool reserves memory in large chunks and
 * keeps what is freed; a synchronization releases what is beyond the pool's threshold. The caller
 * serializes the calls on one pool.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cuda_abi.h"

/* The size of one reservation of a pool, as in NVIDIA's driver. */
#define CUDA_POOL_CHUNK (32ull << 20)

struct cuda_pool {
    uint64_t used, used_high;
    uint64_t reserved, reserved_high; /* in whole chunks */
    uint64_t threshold;               /* of reserved bytes that stay over a synchronization */
    uint64_t most;
    int reuse[3];
};

/* `most` bytes, rounded up to whole chunks, may be in use; 0: as many as there are. */
void cuda_pool_init(struct cuda_pool *pool, uint64_t most);

bool cuda_pool_has_capacity(const struct cuda_pool *pool, uint64_t size);
void cuda_pool_take(struct cuda_pool *pool, uint64_t size);
void cuda_pool_give(struct cuda_pool *pool, uint64_t size);

/* Releases reserved memory beyond `keep` bytes, unless it is in use. */
void cuda_pool_release(struct cuda_pool *pool, uint64_t keep);

CUresult cuda_pool_get(const struct cuda_pool *pool, CUmemPool_attribute attribute,
                       void *ret_value);
CUresult cuda_pool_set(struct cuda_pool *pool, CUmemPool_attribute attribute, const void *value);

/* Whether a pool is one of page-locked memory of the host, on any of its NUMA nodes. */
bool cuda_pool_is_on_host(const CUmemLocation *location);

/* For cuMemPoolCreate(): there are pools of page-locked memory, of devices and of the host; only
 * those of devices can be shared. CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_SUPPORTED. */
CUresult cuda_pool_check(const CUmemPoolProps *props);

/* Whether a pool can be shared so: as a file descriptor. */
bool cuda_pool_is_descriptor(CUmemAllocationHandleType type, unsigned long long flags);

/* For cuMemPoolSetAccess(): CUDA_ERROR_INVALID_VALUE for an unknown device or access,
 * CUDA_ERROR_INVALID_DEVICE where a device would lose its own pool. */
CUresult cuda_pool_check_access(const CUmemAccessDesc *access, bool is_own);

/* The same of a pool of the host for the host itself, which always has access:
 * CUDA_ERROR_NOT_SUPPORTED to take it away. */
CUresult cuda_pool_check_host_access(const CUmemAccessDesc *access);

/* For cuMemGetDefaultMemPool() and the like, which name a pool by its place: there are none of
 * managed memory. CUDA_ERROR_INVALID_VALUE without a location, else CUDA_ERROR_NOT_SUPPORTED. */
CUresult cuda_pool_check_place(const CUmemLocation *location, CUmemAllocationType type);
