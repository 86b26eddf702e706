/* SPDX-License-Identifier: Apache-2.0 */
/* See pool_pending.h. */
#include "pool_pending.h"

#include <stdlib.h>

#include "cleanup.h"
#include "client_ipc.h"
#include "client_memory.h"
#include "client_pool.h"
#include "cuda_pointer.h"
#include "stream_commands.h"
#include "stream_wait.h"

struct pending {
    struct heap *heap;
    uint64_t address, size;
    uint64_t pool, stream;
    uint64_t waits; /* stream_waits() when it was freed */
    struct fence fence;
    struct list link;
};

static struct blocks {
    pthread_mutex_t lock;
    struct list pending; /* of all devices, oldest first */
} blocks;

#define BLOCKS_LOCKED _cleanup_mutex_ pthread_mutex_t *blocks_held = mutex_hold(&blocks.lock)

void pool_pending_init(void)
{
    pthread_mutex_init(&blocks.lock, NULL);
    list_init(&blocks.pending);
}

static struct pending *pop_ready(const struct heap *heap)
{
    BLOCKS_LOCKED;

    list_for_each (struct pending, pending, &blocks.pending, link) {
        if (pending->heap == heap && fence_passed(pending->fence)) {
            list_remove(&pending->link);
            return pending;
        }
    }
    return NULL;
}

static bool oldest_fence(const struct heap *heap, struct fence *ret_fence, uint64_t *ret_stream)
{
    BLOCKS_LOCKED;

    list_for_each (struct pending, pending, &blocks.pending, link) {
        if (pending->heap == heap) {
            *ret_fence = pending->fence;
            *ret_stream = pending->stream;
            return true;
        }
    }
    return false;
}

void memory_free_pending(struct heap *heap, bool wait)
{
    struct pending *pending;
    struct fence fence;
    uint64_t stream;

    do {
        while ((pending = pop_ready(heap)) != NULL) {
            ipc_withdraw_at(pending->address);
            pool_end_since(heap_give(heap, pending->address), pending->waits);
            free(pending);
        }
    } while (wait && oldest_fence(heap, &fence, &stream) &&
             fence_wait(fence, 0, FENCE_SPIN) == CUDA_SUCCESS);
}

bool pool_pending_take(uint64_t pool, uint64_t stream, uint64_t size, uint64_t *ret_address)
{
    BLOCKS_LOCKED;

    list_for_each (struct pending, pending, &blocks.pending, link) {
        if (pending->pool == pool && pending->stream == stream && pending->size == size) {
            *ret_address = pending->address;
            list_remove(&pending->link);
            free(pending);
            return true;
        }
    }
    return false;
}

static bool already_pending_locked(uint64_t address)
{
    list_for_each (struct pending, pending, &blocks.pending, link) {
        if (pending->address == address)
            return true;
    }
    return false;
}

static CUresult put_off(struct pending what)
{
    BLOCKS_LOCKED;
    struct pending *pending;

    if (already_pending_locked(what.address))
        return CUDA_ERROR_INVALID_VALUE;
    pending = malloc(sizeof(*pending));
    if (!pending)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *pending = what;
    pending->waits = stream_waits();
    list_append(&blocks.pending, &pending->link);
    return CUDA_SUCCESS;
}

static struct heap *heap_of(const struct allocation *allocation)
{
    return allocation->kind == &kind_host_pool ? memory_host_heap()
                                               : memory_device_heap(allocation->context->device);
}

void pool_give(const struct allocation *allocation, struct fence fence)
{
    put_off((struct pending){
        .heap = heap_of(allocation),
        .address = allocation->address,
        .size = allocation->size,
        .fence = fence,
    });
}

bool pool_is_pending(uint64_t address)
{
    BLOCKS_LOCKED;

    return already_pending_locked(address);
}

CUresult pool_give_async(const struct allocation *allocation, struct stream *stream)
{
    struct fence fence;
    CUresult result = stream_fence(stream, &fence);

    return result != CUDA_SUCCESS ? result
                                  : put_off((struct pending){
                                        .heap = heap_of(allocation),
                                        .address = allocation->address,
                                        .size = allocation->size,
                                        .pool = allocation->pool,
                                        .stream = stream->handle,
                                        .fence = fence,
                                    });
}

/* ---- memory of pools ---- */

/* Memory that is only kept until work has passed its free is unknown to the program. */
static void describe_pool_memory(const struct allocation *allocation, struct cuda_pointer *pointer)
{
    BLOCKS_LOCKED;

    if (already_pending_locked(allocation->address)) {
        *pointer = (struct cuda_pointer){.address = pointer->address};
        return;
    }
    pointer->context = NULL;
    pointer->pool = (CUmemoryPool)(uintptr_t)allocation->pool;
}

static CUresult give_pool_memory(const struct allocation *allocation)
{
    if (pool_is_pending(allocation->address))
        return CUDA_ERROR_INVALID_VALUE;
    memory_give(heap_of(allocation), allocation->address);
    return CUDA_SUCCESS;
}

const struct memory_kind kind_pool = {
    .place = PLACE_DEVICE,
    .movable = true, /* to another allocation of the pool */
    .free = give_pool_memory,
    .free_async = pool_give_async,
    .describe = describe_pool_memory,
};

const struct memory_kind kind_host_pool = {
    .place = PLACE_PINNED,
    .movable = true,
    .free = give_pool_memory,
    .free_async = pool_give_async,
    .describe = describe_pool_memory,
};
