/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small allocations share granules of 4 to 32 MiB, large ones have a granule each. Granules that
 * are wholly free stay up to a cap, so a program that allocates and frees in a loop asks the server
 * once.
 */
#include "heap.h"

#include <stdlib.h>

#include "cleanup.h"
#include "fd.h"

#define SHARED_GRANULE_FIRST (UINT64_C(4) << 20)
#define SHARED_DOUBLINGS 3
#define LARGE (UINT64_C(16) << 20)
#define PAGE 4096u
#define KEPT_BYTES (UINT64_C(256) << 20)

/* A map holds pointers: the upper half is the number of pages, the lower one the descriptor plus 1,
 * for 0 is a descriptor, too. */
static void *granule_to_value(uint64_t size, int fd)
{
    return (void *)(uintptr_t)(size / PAGE << 32 | ((uint32_t)fd + 1));
}

static int value_to_fd(void *value)
{
    return (int)((uint32_t)(uintptr_t)value - 1);
}

static uint64_t value_to_size(void *value)
{
    return ((uint64_t)(uintptr_t)value >> 32) * PAGE;
}

void heap_init(struct heap *heap, const struct heap_source *source, uint32_t part,
               uint64_t granularity)
{
    suballoc_init(&heap->blocks);
    map_init(&heap->granules);
    heap->source = source;
    heap->part = part;
    heap->granularity = granularity;
}

static bool take_block(struct heap *heap, struct allocation *allocation)
{
    _cleanup_lock_ struct lock *lock = lock_hold(&heap->lock);

    allocation->address = suballoc_take(&heap->blocks, allocation->size, allocation);
    return allocation->address != 0;
}

/* A large allocation takes the whole granule; a small one leaves the rest to others. */
static int add_granule_locked(struct heap *heap, uint64_t address, uint64_t size, int fd,
                              struct allocation *allocation)
{
    if (map_put(&heap->granules, address, granule_to_value(size, fd)) < 0)
        return -1;
    if (allocation->size >= LARGE) {
        allocation->address = address;
        return suballoc_add_taken(&heap->blocks, address, size, allocation->size, allocation);
    }
    if (suballoc_add_granule(&heap->blocks, address, size) < 0)
        return -1;
    allocation->address = suballoc_take(&heap->blocks, allocation->size, allocation);
    return allocation->address ? 0 : -1;
}

static CUresult grow_heap(struct heap *heap, uint64_t size, struct allocation *allocation)
{
    uint64_t address;
    int fd, r;
    CUresult result = heap->source->create(heap->part, size, &address, &fd);

    if (result != CUDA_SUCCESS)
        return result;
    lock_take(&heap->lock);
    r = add_granule_locked(heap, address, size, fd, allocation);
    if (r < 0)
        map_remove(&heap->granules, address);
    lock_give(&heap->lock);
    if (r == 0)
        return CUDA_SUCCESS;
    heap->source->release(address, size);
    fd_close(&fd);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* A program that uses little memory has little; one that uses much seldom asks the server. */
static uint64_t shared_size(struct heap *heap, uint64_t needed)
{
    _cleanup_lock_ struct lock *lock = lock_hold(&heap->lock);
    size_t granules = heap->granules.count;
    unsigned doublings = granules < SHARED_DOUBLINGS ? (unsigned)granules : SHARED_DOUBLINGS;
    uint64_t size = SHARED_GRANULE_FIRST << doublings;

    return size > needed ? size : needed;
}

/* When a shared granule is not available any more, one of just the needed size may still be. */
static CUresult grow_for(struct heap *heap, struct allocation *allocation)
{
    uint64_t needed = (allocation->size + heap->granularity - 1) & ~(heap->granularity - 1);
    CUresult result;

    if (needed < allocation->size)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (allocation->size < LARGE) {
        result = grow_heap(heap, shared_size(heap, needed), allocation);
        if (result != CUDA_ERROR_OUT_OF_MEMORY)
            return result;
    }
    return grow_heap(heap, needed, allocation);
}

CUresult heap_take(struct heap *heap, struct allocation *allocation)
{
    CUresult result;

    if (take_block(heap, allocation))
        return CUDA_SUCCESS;
    result = grow_for(heap, allocation);
    if (result != CUDA_ERROR_OUT_OF_MEMORY)
        return result;
    heap_trim(heap, 0);
    return grow_for(heap, allocation);
}

struct allocation *heap_give(struct heap *heap, uint64_t address)
{
    struct suballoc_info info;
    bool found;

    lock_take(&heap->lock);
    found = suballoc_find(&heap->blocks, address, &info) && info.address == address &&
            suballoc_give(&heap->blocks, address) == 0;
    lock_give(&heap->lock);
    if (!found)
        return NULL;
    heap_trim(heap, KEPT_BYTES);
    return info.user;
}

bool heap_find(struct heap *heap, uint64_t address, struct allocation *ret_allocation)
{
    _cleanup_lock_ struct lock *lock = lock_hold(&heap->lock);
    struct suballoc_info info;

    if (!suballoc_find(&heap->blocks, address, &info))
        return false;
    *ret_allocation = *(struct allocation *)info.user;
    return true;
}

bool heap_next(struct heap *heap, const struct context *context, uint64_t address,
               struct allocation *ret_allocation)
{
    _cleanup_lock_ struct lock *lock = lock_hold(&heap->lock);
    struct suballoc_info info;

    while (suballoc_next(&heap->blocks, address, &info)) {
        const struct allocation *allocation = info.user;

        if (allocation->context == context) {
            *ret_allocation = *allocation;
            return true;
        }
        address = info.address + 1;
    }
    return false;
}

uint64_t heap_unused(struct heap *heap)
{
    _cleanup_lock_ struct lock *lock = lock_hold(&heap->lock);

    return heap->blocks.free_bytes;
}

static uint64_t remove_granule(struct heap *heap, uint64_t keep, uint64_t *ret_size, int *ret_fd)
{
    _cleanup_lock_ struct lock *lock = lock_hold(&heap->lock);
    uint64_t address;

    if (heap->blocks.whole_free_bytes <= keep)
        return 0;
    address = suballoc_remove_free_granule(&heap->blocks, ret_size);
    if (address)
        *ret_fd = value_to_fd(map_remove(&heap->granules, address));
    return address;
}

void heap_trim(struct heap *heap, uint64_t keep)
{
    uint64_t address, size;
    int fd;

    while ((address = remove_granule(heap, keep, &size, &fd)) != 0) {
        heap->source->release(address, size);
        fd_close(&fd);
    }
}

CUresult heap_for_each_granule(struct heap *heap,
                               CUresult (*visit)(const struct heap *heap, uint64_t address,
                                                 uint64_t size, int fd))
{
    const struct map_entry *entry;
    CUresult result = CUDA_SUCCESS;
    size_t cursor = 0;

    while (result == CUDA_SUCCESS && (entry = map_next(&heap->granules, &cursor)) != NULL)
        result = visit(heap, entry->key, value_to_size(entry->value), value_to_fd(entry->value));
    return result;
}

void heap_after_fork(struct heap *heap)
{
    const struct map_entry *entry;
    size_t cursor = 0;

    while ((entry = map_next(&heap->granules, &cursor)) != NULL) {
        int fd = value_to_fd(entry->value);

        fd_close(&fd);
    }
}
