/* SPDX-License-Identifier: Apache-2.0 */
/* The counts of a pool; see cuda_pool.h. */
#include "cuda_pool.h"

#include <stdio.h>
#include <unistd.h>

static uint64_t whole_chunks(uint64_t size)
{
    if (size > UINT64_MAX - (CUDA_POOL_CHUNK - 1))
        return UINT64_MAX;
    return (size + CUDA_POOL_CHUNK - 1) / CUDA_POOL_CHUNK * CUDA_POOL_CHUNK;
}

void cuda_pool_init(struct cuda_pool *pool, uint64_t most)
{
    *pool = (struct cuda_pool){.most = whole_chunks(most), .reuse = {1, 1, 1}};
}

static uint64_t greater(uint64_t one, uint64_t other)
{
    return one > other ? one : other;
}

bool cuda_pool_has_capacity(const struct cuda_pool *pool, uint64_t size)
{
    return !pool->most || (size <= pool->most && pool->used <= pool->most - size);
}

void cuda_pool_take(struct cuda_pool *pool, uint64_t size)
{
    pool->used += size;
    pool->used_high = greater(pool->used_high, pool->used);
    pool->reserved = greater(pool->reserved, whole_chunks(pool->used));
    pool->reserved_high = greater(pool->reserved_high, pool->reserved);
}

void cuda_pool_give(struct cuda_pool *pool, uint64_t size)
{
    pool->used -= size;
}

void cuda_pool_release(struct cuda_pool *pool, uint64_t keep)
{
    uint64_t least = greater(whole_chunks(pool->used), whole_chunks(keep));

    if (pool->reserved > least)
        pool->reserved = least;
}

static bool is_reuse(CUmemPool_attribute attribute)
{
    return attribute >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
           attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

static const uint64_t *count_of(const struct cuda_pool *pool, CUmemPool_attribute attribute)
{
    switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        return &pool->threshold;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        return &pool->reserved;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        return &pool->reserved_high;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        return &pool->used;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        return &pool->used_high;
    default:
        return NULL;
    }
}

CUresult cuda_pool_get(const struct cuda_pool *pool, CUmemPool_attribute attribute, void *ret_value)
{
    const uint64_t *count = count_of(pool, attribute);

    if (is_reuse(attribute))
        *(int *)ret_value =
            pool->reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES];
    else if (count)
        *(cuuint64_t *)ret_value = *count;
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* A 0 sets a high-water mark back to the current value; no other value is allowed. */
static CUresult lower_mark(uint64_t *mark, uint64_t now, cuuint64_t value)
{
    if (value != 0)
        return CUDA_ERROR_INVALID_VALUE;
    *mark = now;
    return CUDA_SUCCESS;
}

CUresult cuda_pool_set(struct cuda_pool *pool, CUmemPool_attribute attribute, const void *value)
{
    if (is_reuse(attribute)) {
        pool->reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] =
            *(const int *)value != 0;
        return CUDA_SUCCESS;
    }
    switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        pool->threshold = *(const cuuint64_t *)value;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        return lower_mark(&pool->reserved_high, pool->reserved, *(const cuuint64_t *)value);
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        return lower_mark(&pool->used_high, pool->used, *(const cuuint64_t *)value);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuda_pool_check_place(const CUmemLocation *location, CUmemAllocationType type)
{
    if (!location)
        return CUDA_ERROR_INVALID_VALUE;
    return (location->type == CU_MEM_LOCATION_TYPE_DEVICE || cuda_pool_is_on_host(location)) &&
                   type == CU_MEM_ALLOCATION_TYPE_PINNED
               ? CUDA_SUCCESS
               : CUDA_ERROR_NOT_SUPPORTED;
}

bool cuda_pool_is_on_host(const CUmemLocation *location)
{
    return location->type == CU_MEM_LOCATION_TYPE_HOST ||
           location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
}

/* A kernel without NUMA has node 0 alone. */
static bool has_node(int id)
{
    char path[64];

    snprintf(path, sizeof(path), "/sys/devices/system/node/node%d", id);
    return id == 0 || access(path, F_OK) == 0;
}

CUresult cuda_pool_check(const CUmemPoolProps *props)
{
    unsigned shared = (unsigned)props->handleTypes;
    bool is_device = props->location.type == CU_MEM_LOCATION_TYPE_DEVICE;

    if (props->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        (!is_device && !cuda_pool_is_on_host(&props->location)) ||
        (props->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA && !has_node(props->location.id)) ||
        (shared && props->location.type == CU_MEM_LOCATION_TYPE_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    return shared & ~(is_device ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0u)
               ? CUDA_ERROR_NOT_SUPPORTED
               : CUDA_SUCCESS;
}

bool cuda_pool_is_descriptor(CUmemAllocationHandleType type, unsigned long long flags)
{
    return type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR && flags == 0;
}

CUresult cuda_pool_check_access(const CUmemAccessDesc *access, bool is_own)
{
    bool given = access->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;

    if (access->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        (!given && access->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE))
        return CUDA_ERROR_INVALID_VALUE;
    return is_own && !given ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult cuda_pool_check_host_access(const CUmemAccessDesc *access)
{
    return access->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? CUDA_SUCCESS
                                                               : CUDA_ERROR_NOT_SUPPORTED;
}
