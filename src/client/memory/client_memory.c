/* SPDX-License-Identifier: Apache-2.0 */
/* The heaps of this client. */
#include "client_memory.h"

#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "client_ipc.h"
#include "client_peer_access.h"
#include "client_pool.h"
#include "client_symbol.h"
#include "client_vmm.h"
#include "granule.h"
#include "host_register.h"
#include "host_register_fork.h"
#include "managed_hooks.h"
#include "vmm_physical.h"

static struct {
    struct heap devices[ATTACH_DEVICES_MAX];
    struct heap host; /* pinned host memory */
    bool used;        /* by this process, or the one that it was forked from */
} memory;

#define GRANULARITY (UINT64_C(2) << 20)

static uint64_t granularity_of(const struct device *device)
{
    uint64_t granularity = device->record->granularity;

    return granularity == 0 || granularity & (granularity - 1) ? GRANULARITY : granularity;
}

/* Most of it is never used, and zeros written over zeros would cost a page fault for each page,
 * when every program starts. */
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
        heap_init(&memory.devices[i], &device_granules, client->devices[i].part,
                  granularity_of(&client->devices[i]));
    heap_init(&memory.host, &host_granules, 0, GRANULARITY);
    variables_init();
    symbols_init();
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

/* Granules are held by descriptors, which a child would hold on to. So the lists of them have to be
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
    vmm_physical_after_fork_in_child();
}

struct device *memory_device_of(uint64_t address)
{
    return device_with_part((address - client->window_base) / client->device_stride);
}

struct heap *memory_heap_of(uint64_t address)
{
    const struct device *device = address < client->host_base ? memory_device_of(address) : NULL;

    if (device)
        return &memory.devices[device->ordinal];
    return address < client->host_base ? NULL : &memory.host;
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

CUresult memory_take(struct heap *heap, const struct memory_kind *kind, struct context *context,
                     uint64_t size, uint64_t *ret_address)
{
    const struct allocation like = {.size = size, .kind = kind, .context = context};

    return memory_take_like(heap, &like, ret_address);
}

void memory_give(struct heap *heap, uint64_t address)
{
    ipc_withdraw_at(address);
    pool_end(heap_give(heap, address));
}

static void free_all_in(struct heap *heap, struct context *context)
{
    struct allocation allocation;

    while (heap_next(heap, context, 0, &allocation))
        memory_give(heap, allocation.address);
}

void memory_free_all(struct context *context)
{
    bool wait = client_error() == CUDA_SUCCESS;

    memory_free_pending(memory_device_heap(context->device), wait);
    memory_free_pending(memory_host_heap(), wait);
    free_all_in(memory_device_heap(context->device), context);
    free_all_in(memory_host_heap(), context);
    managed_free_all(context);
    host_register_end_all(context);
    ipc_close_all(context);
}
