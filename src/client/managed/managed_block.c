/* SPDX-License-Identifier: Apache-2.0 */
#include "managed_block.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "cuda_advice.h"
#include "deferred_signals.h"
#include "managed_area.h"
#include "managed_copy.h"
#include "managed_hooks.h"
#include "page_watch.h"
#include "ranges.h"
#include "wire_calls.h"

/* What is kept of freed memory for the next allocation. */
#define KEPT_BYTES (UINT64_C(32) << 20)

static struct {
    pthread_mutex_t lock;
    struct ranges all; /* struct managed_block */
    struct list active;
    struct list ahead;
    struct list awaited;
    struct list direct;
    /* Atomic: how long the lists are; changed with the lock, read without. */
    _Atomic unsigned active_count, ahead_count;
} blocks;

void block_init(void)
{
    memset(&blocks, 0, sizeof(blocks));
    pthread_mutex_init(&blocks.lock, NULL);
    list_init(&blocks.active);
    list_init(&blocks.ahead);
    list_init(&blocks.awaited);
    list_init(&blocks.direct);
}

void block_lock(void)
{
    deferring_mutex_lock(&blocks.lock);
}

void block_unlock(void)
{
    deferring_mutex_unlock(&blocks.lock);
}

struct managed_block *block_at_locked(uint64_t address)
{
    const struct range *range = ranges_find(&blocks.all, address);

    return range ? range->value : NULL;
}

struct managed_block *block_next_locked(uint64_t address, uint64_t end)
{
    const struct range *range = ranges_find(&blocks.all, address);

    if (!range)
        range = ranges_next(&blocks.all, address);
    return range && address < end && range->start < end ? range->value : NULL;
}

bool block_find(uint64_t address, struct allocation *ret_allocation)
{
    _cleanup_deferring_mutex_ pthread_mutex_t *lock = deferring_mutex_hold(&blocks.lock);
    const struct managed_block *block = block_at_locked(address);

    if (!block || block->of_variables)
        return false;
    if (ret_allocation)
        *ret_allocation = block->allocation;
    return true;
}

bool block_moves(uint64_t address)
{
    _cleanup_deferring_mutex_ pthread_mutex_t *lock = deferring_mutex_hold(&blocks.lock);

    return block_at_locked(address) != NULL;
}

struct residence_run block_pages(const struct managed_block *block, uint64_t address, uint64_t size)
{
    uint64_t start = block->entry.address, end = start + block->entry.size;
    uint64_t first = address < start ? start : address;
    uint64_t last = size > end - address ? end : address + size;

    return (struct residence_run){
        (uint32_t)((first - start) / RESIDENCE_PAGE),
        (uint32_t)((last - start + RESIDENCE_PAGE - 1) / RESIDENCE_PAGE -
                   (first - start) / RESIDENCE_PAGE),
    };
}

/* A stream that is gone leaves its memory as it was at first. */
unsigned block_attachment_locked(const struct managed_block *block)
{
    if (block->attach != CU_MEM_ATTACH_SINGLE ||
        handles_get(&client->handles, WIRE_STREAM, block->stream))
        return block->attach;
    return block->first_attach;
}

bool block_is_for_locked(const struct managed_block *block, const struct stream *stream)
{
    switch (block_attachment_locked(block)) {
    case CU_MEM_ATTACH_HOST:
        return false;
    case CU_MEM_ATTACH_SINGLE:
        return block->stream == stream->handle;
    default:
        return true;
    }
}

/* ---- blocks with something of the program ---- */

struct list *block_active_locked(void)
{
    return &blocks.active;
}

void block_activate_locked(struct managed_block *block)
{
    if (block->active)
        return;
    block->active = true;
    list_append(&blocks.active, &block->link);
    atomic_fetch_add_explicit(&blocks.active_count, 1, memory_order_release);
}

void block_rest_locked(struct managed_block *block)
{
    if (!block->active)
        return;
    block->active = false;
    list_remove(&block->link);
    atomic_fetch_sub_explicit(&blocks.active_count, 1, memory_order_release);
}

bool block_any_active(void)
{
    return atomic_load_explicit(&blocks.active_count, memory_order_acquire) != 0;
}

/* ---- blocks that come down by themselves ---- */

struct list *block_ahead_locked(void)
{
    return &blocks.ahead;
}

void block_set_turns_locked(struct managed_block *block, unsigned turns)
{
    if (turns && !block->turns) {
        list_append(&blocks.ahead, &block->ahead_link);
        atomic_fetch_add_explicit(&blocks.ahead_count, 1, memory_order_release);
    }
    if (!turns && block->turns) {
        list_remove(&block->ahead_link);
        atomic_fetch_sub_explicit(&blocks.ahead_count, 1, memory_order_release);
    }
    block->turns = turns;
}

bool block_any_ahead(void)
{
    return atomic_load_explicit(&blocks.ahead_count, memory_order_acquire) != 0;
}

struct list *block_direct_locked(void)
{
    return &blocks.direct;
}

/* ---- blocks that touches wait for ---- */

struct list *block_awaited_locked(void)
{
    return &blocks.awaited;
}

void block_await_locked(struct managed_block *block)
{
    if (list_empty(&block->wait.link))
        list_append(&blocks.awaited, &block->wait.link);
}

void block_wake_locked(struct managed_block *block)
{
    if (list_empty(&block->wait.link))
        return;
    list_remove(&block->wait.link);
    block->wait.for_launches = block->wait.for_arrival = false;
    page_watch_wake(area_watch(), block->entry.address, block->entry.size);
}

/* ---- coming and going ---- */

static void block_free(struct managed_block *block)
{
    if (!block)
        return;
    residence_fini(&block->residence);
    cuda_advice_destroy(block->allocation.advice);
    free(block);
}

static CUresult give_block(const struct allocation *allocation)
{
    return block_destroy(allocation->address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static const struct memory_kind kind_managed = {
    .place = PLACE_DEVICE,
    .managed = true,
    .movable = true,
    .free = give_block,
};

static struct managed_block *block_new(struct context *context, uint64_t size, unsigned attach)
{
    struct managed_block *block = calloc(1, sizeof(*block));

    if (!block)
        return NULL;
    list_init(&block->link);
    list_init(&block->ahead_link);
    list_init(&block->wait.link);
    list_init(&block->direct_link);
    block->attach = block->first_attach = attach;
    block->arrival = FENCE_OF_NOTHING;
    block->allocation = (struct allocation){
        .size = size,
        .id = client_next_id(),
        .context = context,
        .kind = &kind_managed,
        .advice = cuda_advice_create(size),
    };
    block->entry = (struct allocation){
        .size = (size + RESIDENCE_PAGE - 1) & ~(uint64_t)(RESIDENCE_PAGE - 1), .context = context};
    if (block->allocation.advice && residence_init(&block->residence, size) == 0)
        return block;
    block_free(block);
    return NULL;
}

/* Pages that an earlier block has left there are hidden. */
static bool enter(struct managed_block *block)
{
    _cleanup_deferring_mutex_ pthread_mutex_t *lock = deferring_mutex_hold(&blocks.lock);

    page_watch_hide(block->entry.address, block->entry.size);
    if (ranges_add(&blocks.all, block->entry.address, block->entry.size, block))
        return false;
    block_activate_locked(block);
    atomic_fetch_add_explicit(&managed_in_use, 1, memory_order_release);
    return true;
}

/* What the device has no room for begins on the host, if the driver has such memory. */
static CUresult take_memory(const struct device *device, struct managed_block *block,
                            struct heap **ret_heap)
{
    CUresult result;

    *ret_heap = area_heap(device);
    result = heap_take(*ret_heap, &block->entry);
    if (result != CUDA_ERROR_OUT_OF_MEMORY)
        return result;
    *ret_heap = area_hosted_heap(device);
    return heap_take(*ret_heap, &block->entry) == CUDA_SUCCESS ? CUDA_SUCCESS
                                                               : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult block_create(struct context *context, uint64_t size, unsigned attach,
                      CUdeviceptr *ret_address)
{
    struct managed_block *block = block_new(context, size, attach);
    struct heap *heap;
    CUresult result = block ? take_memory(context->device, block, &heap) : CUDA_ERROR_OUT_OF_MEMORY;

    if (result == CUDA_SUCCESS) {
        block->allocation.address = block->entry.address;
        block->host = area_host_address(block->entry.address);
        if (!enter(block)) {
            heap_give(heap, block->entry.address);
            result = CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    if (result != CUDA_SUCCESS) {
        block_free(block);
        return result;
    }
    *ret_address = block->allocation.address;
    return CUDA_SUCCESS;
}

static struct managed_block *leave(uint64_t address)
{
    _cleanup_deferring_mutex_ pthread_mutex_t *lock = deferring_mutex_hold(&blocks.lock);
    struct range removed;

    if (ranges_remove(&blocks.all, address, &removed))
        return NULL;
    block_rest_locked(removed.value);
    block_set_turns_locked(removed.value, 0);
    block_wake_locked(removed.value);
    list_remove(&((struct managed_block *)removed.value)->direct_link);
    atomic_fetch_sub_explicit(&managed_in_use, 1, memory_order_release);
    return removed.value;
}

/* The device has the initial values. */
static bool enter_at(struct managed_block *block)
{
    _cleanup_deferring_mutex_ pthread_mutex_t *lock = deferring_mutex_hold(&blocks.lock);

    residence_leave(&block->residence, (struct residence_run){0, block->residence.count});
    if (ranges_add(&blocks.all, block->entry.address, block->entry.size, block))
        return false;
    atomic_fetch_add_explicit(&managed_in_use, 1, memory_order_release);
    return true;
}

int block_create_at(uint64_t address, uint64_t size)
{
    struct managed_block *block = block_new(NULL, size, CU_MEM_ATTACH_GLOBAL);
    int error = block ? view_create(address, size, &block->host) : -ENOMEM;

    if (!error) {
        block->of_variables = true;
        block->allocation.address = block->entry.address = address;
        if (enter_at(block))
            return 0;
        view_destroy(address, size, block->host);
        error = -ENOMEM;
    }
    block_free(block);
    return error;
}

void block_destroy_at(uint64_t address)
{
    struct managed_block *block = leave(address);

    managed_wait_quietly(block->arrival);
    view_destroy(address, block->entry.size, block->host);
    block_free(block);
}

bool block_destroy(uint64_t address)
{
    struct managed_block *block = leave(address);
    struct heap *heap;

    if (!block)
        return false;
    heap = area_heap_of(address);
    heap_give(heap, block->entry.address);
    heap_trim(heap, KEPT_BYTES);
    block_free(block);
    return true;
}

void block_trim(void)
{
    if (area_is_possible())
        area_trim();
}

static uint64_t next_of(const struct context *context)
{
    _cleanup_deferring_mutex_ pthread_mutex_t *lock = deferring_mutex_hold(&blocks.lock);

    for (size_t i = 0; i < blocks.all.count; i++) {
        const struct managed_block *block = blocks.all.sorted[i].value;

        if (block->allocation.context == context && !block->of_variables)
            return block->allocation.address;
    }
    return 0;
}

void block_destroy_all(const struct context *context)
{
    uint64_t address;

    while ((address = next_of(context)) != 0)
        block_destroy(address);
}

/* ---- fork ---- */

void block_before_fork(void)
{
    deferring_mutex_lock(&blocks.lock);
}

void block_after_fork_in_parent(void)
{
    deferring_mutex_unlock(&blocks.lock);
}
