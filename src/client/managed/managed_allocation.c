/* SPDX-License-Identifier: Apache-2.0 */
#include "managed_allocation.h"

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

/* Freed memory that is kept for the next allocation. */
#define KEPT_BYTES (UINT64_C(32) << 20)

static struct {
    pthread_mutex_t lock;
    struct ranges all; /* struct managed_allocation */
    struct list active;
    struct list prefetched;
    struct list awaited;
    struct list direct;
    /* Atomic: how long the lists are; changed with the lock, read without. */
    _Atomic unsigned active_count, prefetched_count;
} managed_allocations;

void managed_allocations_init(void)
{
    memset(&managed_allocations, 0, sizeof(managed_allocations));
    pthread_mutex_init(&managed_allocations.lock, NULL);
    list_init(&managed_allocations.active);
    list_init(&managed_allocations.prefetched);
    list_init(&managed_allocations.awaited);
    list_init(&managed_allocations.direct);
}

void managed_allocations_lock(void)
{
    deferring_mutex_lock(&managed_allocations.lock);
}

void managed_allocations_unlock(void)
{
    deferring_mutex_unlock(&managed_allocations.lock);
}

struct managed_allocation *managed_at_locked(uint64_t address)
{
    const struct range *range = ranges_find(&managed_allocations.all, address);

    return range ? range->value : NULL;
}

struct managed_allocation *managed_in_range_locked(uint64_t address, uint64_t end)
{
    const struct range *range = ranges_find(&managed_allocations.all, address);

    if (!range)
        range = ranges_next(&managed_allocations.all, address);
    return range && address < end && range->start < end ? range->value : NULL;
}

bool managed_allocation_find(uint64_t address, struct allocation *ret_allocation)
{
    _cleanup_deferring_mutex_ pthread_mutex_t *lock =
        deferring_mutex_hold(&managed_allocations.lock);
    const struct managed_allocation *managed = managed_at_locked(address);

    if (!managed || managed->of_variables)
        return false;
    if (ret_allocation)
        *ret_allocation = managed->allocation;
    return true;
}

bool managed_moves(uint64_t address)
{
    _cleanup_deferring_mutex_ pthread_mutex_t *lock =
        deferring_mutex_hold(&managed_allocations.lock);

    return managed_at_locked(address) != NULL;
}

struct residence_run managed_run_of(const struct managed_allocation *managed, uint64_t address,
                                    uint64_t size)
{
    uint64_t start = managed->entry.address, end = start + managed->entry.size;
    uint64_t first = address < start ? start : address;
    uint64_t last = size > end - address ? end : address + size;

    return (struct residence_run){
        (uint32_t)((first - start) / RESIDENCE_PAGE),
        (uint32_t)((last - start + RESIDENCE_PAGE - 1) / RESIDENCE_PAGE -
                   (first - start) / RESIDENCE_PAGE),
    };
}

/* After the end of its stream, memory is attached as it was at first. */
unsigned managed_attachment_locked(const struct managed_allocation *managed)
{
    if (managed->attach != CU_MEM_ATTACH_SINGLE ||
        handles_get(&client->handles, WIRE_STREAM, managed->stream))
        return managed->attach;
    return managed->first_attach;
}

bool managed_is_for_locked(const struct managed_allocation *managed, const struct stream *stream)
{
    switch (managed_attachment_locked(managed)) {
    case CU_MEM_ATTACH_HOST:
        return false;
    case CU_MEM_ATTACH_SINGLE:
        return managed->stream == stream->handle;
    default:
        return true;
    }
}

/* ---- allocations with pages of the program ---- */

struct list *managed_active_locked(void)
{
    return &managed_allocations.active;
}

void managed_activate_locked(struct managed_allocation *managed)
{
    if (managed->active)
        return;
    managed->active = true;
    list_append(&managed_allocations.active, &managed->link);
    atomic_fetch_add_explicit(&managed_allocations.active_count, 1, memory_order_release);
}

void managed_deactivate_locked(struct managed_allocation *managed)
{
    if (!managed->active)
        return;
    managed->active = false;
    list_remove(&managed->link);
    atomic_fetch_sub_explicit(&managed_allocations.active_count, 1, memory_order_release);
}

bool managed_any_active(void)
{
    return atomic_load_explicit(&managed_allocations.active_count, memory_order_acquire) != 0;
}

/* ---- allocations that are prefetched ---- */

struct list *managed_prefetched_locked(void)
{
    return &managed_allocations.prefetched;
}

void managed_set_prefetch_budget_locked(struct managed_allocation *managed, unsigned budget)
{
    if (budget && !managed->prefetch_budget) {
        list_append(&managed_allocations.prefetched, &managed->prefetch_link);
        atomic_fetch_add_explicit(&managed_allocations.prefetched_count, 1, memory_order_release);
    }
    if (!budget && managed->prefetch_budget) {
        list_remove(&managed->prefetch_link);
        atomic_fetch_sub_explicit(&managed_allocations.prefetched_count, 1, memory_order_release);
    }
    managed->prefetch_budget = budget;
}

bool managed_any_prefetched(void)
{
    return atomic_load_explicit(&managed_allocations.prefetched_count, memory_order_acquire) != 0;
}

struct list *managed_direct_locked(void)
{
    return &managed_allocations.direct;
}

/* ---- allocations that page faults wait for ---- */

struct list *managed_awaited_locked(void)
{
    return &managed_allocations.awaited;
}

void managed_await_locked(struct managed_allocation *managed)
{
    if (list_empty(&managed->wait.link))
        list_append(&managed_allocations.awaited, &managed->wait.link);
}

void managed_wake_threads_locked(struct managed_allocation *managed)
{
    if (list_empty(&managed->wait.link))
        return;
    list_remove(&managed->wait.link);
    managed->wait.for_launches = managed->wait.for_arrival = false;
    page_watch_wake(area_watch(), managed->entry.address, managed->entry.size);
}

/* ---- coming and going ---- */

static void managed_allocation_free(struct managed_allocation *managed)
{
    if (!managed)
        return;
    residence_fini(&managed->residence);
    cuda_advice_destroy(managed->allocation.advice);
    free(managed);
}

static CUresult give_managed(const struct allocation *allocation)
{
    return managed_destroy(allocation->address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static const struct memory_kind kind_managed = {
    .place = PLACE_DEVICE,
    .managed = true,
    .movable = true,
    .free = give_managed,
};

static struct managed_allocation *managed_allocation_new(struct context *context, uint64_t size,
                                                         unsigned attach)
{
    struct managed_allocation *managed = calloc(1, sizeof(*managed));

    if (!managed)
        return NULL;
    list_init(&managed->link);
    list_init(&managed->prefetch_link);
    list_init(&managed->wait.link);
    list_init(&managed->direct_link);
    managed->attach = managed->first_attach = attach;
    managed->arrival = FENCE_OF_NOTHING;
    managed->allocation = (struct allocation){
        .size = size,
        .id = client_next_id(),
        .context = context,
        .kind = &kind_managed,
        .advice = cuda_advice_create(size),
    };
    managed->entry = (struct allocation){
        .size = (size + RESIDENCE_PAGE - 1) & ~(uint64_t)(RESIDENCE_PAGE - 1), .context = context};
    if (managed->allocation.advice && residence_init(&managed->residence, size) == 0)
        return managed;
    managed_allocation_free(managed);
    return NULL;
}

/* Hides pages that an earlier allocation has left there. */
static bool enter_table(struct managed_allocation *managed)
{
    _cleanup_deferring_mutex_ pthread_mutex_t *lock =
        deferring_mutex_hold(&managed_allocations.lock);

    page_watch_hide(managed->entry.address, managed->entry.size);
    if (ranges_add(&managed_allocations.all, managed->entry.address, managed->entry.size, managed))
        return false;
    managed_activate_locked(managed);
    atomic_fetch_add_explicit(&managed_in_use, 1, memory_order_release);
    return true;
}

/* Where the device has no capacity, an allocation begins on the host, if the driver has such
 * memory. */
static CUresult take_memory(const struct device *device, struct managed_allocation *managed,
                            struct heap **ret_heap)
{
    CUresult result;

    *ret_heap = area_heap(device);
    result = heap_take(*ret_heap, &managed->entry);
    if (result != CUDA_ERROR_OUT_OF_MEMORY)
        return result;
    *ret_heap = area_hosted_heap(device);
    return heap_take(*ret_heap, &managed->entry) == CUDA_SUCCESS ? CUDA_SUCCESS
                                                                 : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult managed_create(struct context *context, uint64_t size, unsigned attach,
                        CUdeviceptr *ret_address)
{
    struct managed_allocation *managed = managed_allocation_new(context, size, attach);
    struct heap *heap;
    CUresult result =
        managed ? take_memory(context->device, managed, &heap) : CUDA_ERROR_OUT_OF_MEMORY;

    if (result == CUDA_SUCCESS) {
        managed->allocation.address = managed->entry.address;
        managed->host = area_host_address(managed->entry.address);
        if (!enter_table(managed)) {
            heap_give(heap, managed->entry.address);
            result = CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    if (result != CUDA_SUCCESS) {
        managed_allocation_free(managed);
        return result;
    }
    *ret_address = managed->allocation.address;
    return CUDA_SUCCESS;
}

static struct managed_allocation *leave_table(uint64_t address)
{
    _cleanup_deferring_mutex_ pthread_mutex_t *lock =
        deferring_mutex_hold(&managed_allocations.lock);
    struct range removed;

    if (ranges_remove(&managed_allocations.all, address, &removed))
        return NULL;
    managed_deactivate_locked(removed.value);
    managed_set_prefetch_budget_locked(removed.value, 0);
    managed_wake_threads_locked(removed.value);
    list_remove(&((struct managed_allocation *)removed.value)->direct_link);
    atomic_fetch_sub_explicit(&managed_in_use, 1, memory_order_release);
    return removed.value;
}

/* The device has the initial values. */
static bool enter_at(struct managed_allocation *managed)
{
    _cleanup_deferring_mutex_ pthread_mutex_t *lock =
        deferring_mutex_hold(&managed_allocations.lock);

    residence_leave(&managed->residence, (struct residence_run){0, managed->residence.count});
    if (ranges_add(&managed_allocations.all, managed->entry.address, managed->entry.size, managed))
        return false;
    atomic_fetch_add_explicit(&managed_in_use, 1, memory_order_release);
    return true;
}

int managed_create_at(uint64_t address, uint64_t size)
{
    struct managed_allocation *managed = managed_allocation_new(NULL, size, CU_MEM_ATTACH_GLOBAL);
    int error = managed ? view_create(address, size, &managed->host) : -ENOMEM;

    if (!error) {
        managed->of_variables = true;
        managed->allocation.address = managed->entry.address = address;
        if (enter_at(managed))
            return 0;
        view_destroy(address, size, managed->host);
        error = -ENOMEM;
    }
    managed_allocation_free(managed);
    return error;
}

void managed_destroy_at(uint64_t address)
{
    struct managed_allocation *managed = leave_table(address);

    managed_wait_quietly(managed->arrival);
    view_destroy(address, managed->entry.size, managed->host);
    managed_allocation_free(managed);
}

bool managed_destroy(uint64_t address)
{
    struct managed_allocation *managed = leave_table(address);
    struct heap *heap;

    if (!managed)
        return false;
    heap = area_heap_of(address);
    heap_give(heap, managed->entry.address);
    heap_trim(heap, KEPT_BYTES);
    managed_allocation_free(managed);
    return true;
}

void managed_trim(void)
{
    if (area_is_possible())
        area_trim();
}

static uint64_t next_of(const struct context *context)
{
    _cleanup_deferring_mutex_ pthread_mutex_t *lock =
        deferring_mutex_hold(&managed_allocations.lock);

    for (size_t i = 0; i < managed_allocations.all.count; i++) {
        const struct managed_allocation *managed = managed_allocations.all.sorted[i].value;

        if (managed->allocation.context == context && !managed->of_variables)
            return managed->allocation.address;
    }
    return 0;
}

void managed_destroy_all(const struct context *context)
{
    uint64_t address;

    while ((address = next_of(context)) != 0)
        managed_destroy(address);
}

/* ---- fork ---- */

void managed_allocations_before_fork(void)
{
    deferring_mutex_lock(&managed_allocations.lock);
}

void managed_allocations_after_fork_in_parent(void)
{
    deferring_mutex_unlock(&managed_allocations.lock);
}
