/* SPDX-License-Identifier: Apache-2.0 */
/* The heaps, and finding what is at an address. */
#include "client_memory.h"

#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "client_ipc.h"
#include "client_peer_access.h"
#include "client_pool.h"
#include "client_vmm.h"
#include "granule.h"
#include "host_register.h"
#include "managed_hooks.h"
#include "ranges.h"

static struct {
    struct heap devices[ATTACH_DEVICES_MAX];
    struct heap host;      /* pinned host memory */
    struct ranges globals; /* variables of modules, which lie outside the window; client->lock */
    bool used;             /* by this process, or the one that it was forked from */
} memory;

#define GRANULARITY (UINT64_C(2) << 20)

static uint64_t granularity_of(const struct device *device)
{
    uint64_t granularity = device->record->granularity;

    return granularity == 0 || granularity & (granularity - 1) ? GRANULARITY : granularity;
}

/* Most of it is never touched, and to write zeros where zeros are would cost a page fault for each
 * page, when every program starts. */
static void clear_memory(void)
{
    if (memory.used)
        memset(&memory, 0, sizeof(memory));
    memory.used = true;
}

int memory_init(void)
{
    clear_memory();
    granules_init();
    for (int i = 0; i < client->device_count; i++)
        heap_init(&memory.devices[i], &device_granules, client->devices[i].index,
                  granularity_of(&client->devices[i]));
    heap_init(&memory.host, &host_granules, 0, GRANULARITY);
    ranges_init(&memory.globals);
    vmm_init();
    host_register_init();
    ipc_init();
    peer_init();
    return pool_init();
}

struct heap *memory_device_heap(const struct device *device)
{
    return &memory.devices[device->ordinal];
}

struct heap *memory_host_heap(void)
{
    return &memory.host;
}

/* ---- fork ---- */

/* Granules are held by descriptors, which a child would hold on to: the lists of them have to be
 * whole when the child looks at them. */
void memory_before_fork(void)
{
    for (int i = 0; i < client->device_count; i++)
        lock_take(&memory.devices[i].lock);
    lock_take(&memory.host.lock);
    host_register_before_fork();
}

void memory_after_fork_in_parent(void)
{
    host_register_after_fork_in_parent();
    lock_give(&memory.host.lock);
    for (int i = client->device_count; i-- > 0;)
        lock_give(&memory.devices[i].lock);
}

void memory_after_fork_in_child(void)
{
    host_register_after_fork_in_child();
    for (int i = 0; i < client->device_count; i++)
        heap_after_fork(&memory.devices[i]);
    heap_after_fork(&memory.host);
}

/* ---- finding ---- */

struct device *memory_device_of(uint64_t address)
{
    return device_with_index((address - client->window_base) / client->device_stride);
}

static bool find_in_window(uint64_t address, struct allocation *ret_allocation,
                           enum place *ret_place)
{
    struct device *device;

    if (address >= client->host_base) {
        *ret_place = PLACE_PINNED;
        return heap_find(&memory.host, address, ret_allocation) ||
               host_register_find(address, ret_allocation);
    }
    *ret_place = PLACE_DEVICE;
    device = memory_device_of(address);
    return device && (heap_find(memory_device_heap(device), address, ret_allocation) ||
                      ipc_find(address, ret_allocation) || managed_find(address, ret_allocation));
}

bool memory_find(uint64_t address, struct allocation *ret_allocation, enum place *ret_place)
{
    if (vmm_is_reserved(address)) {
        *ret_place = PLACE_DEVICE;
        return vmm_find(address, ret_allocation);
    }
    if (managed_find(address, ret_allocation)) {
        *ret_place = PLACE_DEVICE;
        return true;
    }
    if (client_in_window(address))
        return find_in_window(address, ret_allocation, ret_place);
    *ret_place = PLACE_PINNED;
    return host_register_find(address, ret_allocation);
}

static bool in_global(uint64_t address, uint64_t size, bool *ret_whole)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);
    const struct range *range = ranges_find(&memory.globals, address);

    *ret_whole = range && size <= range->size - (address - range->start);
    return range != NULL;
}

/* Memory that is not registered is the program's own, and so is a range that is registered only in
 * part. */
static enum place place_outside(uint64_t address, uint64_t size)
{
    struct allocation allocation;
    bool whole;

    if (host_register_find(address, &allocation))
        return size <= allocation.size - (address - allocation.address) ? PLACE_PINNED
                                                                        : PLACE_PAGEABLE;
    if (memory.globals.count == 0 || !in_global(address, size, &whole))
        return PLACE_PAGEABLE;
    return whole ? PLACE_DEVICE : PLACE_NOWHERE;
}

enum place memory_place(uint64_t address, uint64_t size)
{
    struct allocation allocation;
    enum place place;

    if (vmm_is_reserved(address))
        return vmm_covers(address, size) ? PLACE_DEVICE : PLACE_NOWHERE;
    if (!client_in_window(address))
        return place_outside(address, size);
    if (!find_in_window(address, &allocation, &place))
        return PLACE_NOWHERE;
    return size <= allocation.size - (address - allocation.address) ? place : PLACE_NOWHERE;
}

bool memory_find_global(uint64_t address, struct allocation *ret_variable)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);
    const struct range *range = ranges_find(&memory.globals, address);

    if (range)
        *ret_variable = *(const struct allocation *)range->value;
    return range != NULL;
}

void memory_add_global(struct allocation *variable)
{
    pthread_mutex_lock(&client->lock);
    ranges_add(&memory.globals, variable->address, variable->size, variable);
    pthread_mutex_unlock(&client->lock);
}

void memory_remove_global(uint64_t address)
{
    pthread_mutex_lock(&client->lock);
    ranges_remove(&memory.globals, address, NULL);
    pthread_mutex_unlock(&client->lock);
}

CUresult memory_take_like(struct heap *heap, const struct allocation *like, uint64_t *ret_address)
{
    struct allocation *allocation = malloc(sizeof(*allocation));
    CUresult result;

    if (!allocation)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *allocation = *like;
    allocation->id = client_next_id();
    result = heap_take(heap, allocation);
    if (result != CUDA_SUCCESS) {
        free(allocation);
        return result;
    }
    *ret_address = allocation->address;
    return CUDA_SUCCESS;
}

CUresult memory_take(struct heap *heap, struct context *context, uint64_t size, unsigned flags,
                     bool managed, uint64_t *ret_address)
{
    const struct allocation like = {
        .size = size, .context = context, .flags = flags, .managed = managed};

    return memory_take_like(heap, &like, ret_address);
}

static void free_all_in(struct heap *heap, struct context *context)
{
    struct allocation allocation;

    while (heap_next(heap, context, 0, &allocation)) {
        ipc_withdraw(allocation.address);
        pool_end(heap_give(heap, allocation.address));
    }
}

void memory_free_all(struct context *context)
{
    memory_reclaim(context->device, client_error() == CUDA_SUCCESS);
    free_all_in(memory_device_heap(context->device), context);
    free_all_in(memory_host_heap(), context);
    managed_free_all(context);
    host_register_end_all(context);
    ipc_close_all(context);
}
