/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See cupti_memory.h. What is allocated, the driver says of the address: after a call that
 * allocates, and before one that frees. Memory that is made in parts (cuMemCreate), arrays, and
 * memory of other processes have no records.
 */
#include "cupti_memory.h"

#include <string.h>
#include <unistd.h>

#include "cupti_buffer.h"
#include "cupti_call.h"
#include "cupti_clock.h"
#include "cupti_driver.h"
#include "cupti_state.h"

/* An allocation. */
struct memory {
    uint64_t address, size; /* size 0: there is none */
    CUcontext context;
    CUmemoryPool pool;
    unsigned type;
    int is_managed, device;
};

/* What the call that the thread is in frees, or the pool that it destroys. */
static __thread struct memory freed;
static __thread struct cupti_pool_facts destroyed;

static bool is_one_of(const char *name, const char *const *names, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

/* Each gives the address through its first parameter. */
static bool allocates(const char *name)
{
    static const char *const names[] = {
        "cuMemAlloc_v2",        "cuMemAllocPitch_v2",      "cuMemAllocManaged",
        "cuMemAllocHost_v2",    "cuMemHostAlloc",          "cuMemAllocAsync",
        "cuMemAllocAsync_ptsz", "cuMemAllocFromPoolAsync", "cuMemAllocFromPoolAsync_ptsz",
    };

    return is_one_of(name, names, sizeof(names) / sizeof(*names));
}

/* Each takes the address as its first parameter. */
static bool frees(const char *name)
{
    static const char *const names[] = {
        "cuMemFree_v2",
        "cuMemFreeHost",
        "cuMemFreeAsync",
        "cuMemFreeAsync_ptsz",
    };

    return is_one_of(name, names, sizeof(names) / sizeof(*names));
}

static struct memory look_at(CUdeviceptr address)
{
    static CUpointer_attribute attributes[] = {
        CU_POINTER_ATTRIBUTE_CONTEXT,        CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,    CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
    };
    struct memory memory = {.address = address};
    void *values[] = {&memory.context,    &memory.pool,   &memory.type,
                      &memory.is_managed, &memory.device, &memory.size};

    if (!address || cupti_driver()->pointer_attributes(sizeof(values) / sizeof(*values), attributes,
                                                       values, address) != CUDA_SUCCESS)
        memory.size = 0;
    return memory;
}

static uint32_t kind_of(const struct memory *memory)
{
    if (memory->is_managed)
        return CUPTI_MEMORY_MANAGED;
    return memory->type == CU_MEMORYTYPE_HOST ? CUPTI_MEMORY_PINNED : CUPTI_MEMORY_DEVICE;
}

/* ---- pools ---- */

static uint64_t pool_number(CUmemoryPool pool, CUmemPool_attribute attribute)
{
    uint64_t value = 0;

    return cupti_driver()->pool_attribute(pool, attribute, &value) == CUDA_SUCCESS ? value : 0;
}

/* Pools have no address of their own, so their handle tells them apart. */
static struct cupti_pool_facts pool_facts(CUmemoryPool pool)
{
    return (struct cupti_pool_facts){
        .type = CUPTI_POOL_LOCAL,
        .address = (uintptr_t)pool,
        .threshold = pool_number(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD),
        .size = pool_number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT),
        .used = pool_number(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT),
    };
}

static void append_pool(const struct profiler_call *call, const struct cupti_pool_facts *facts,
                        uint32_t step, uint64_t kept)
{
    const struct cupti_pool record = {
        .kind = CUPTI_KIND_MEMORY_POOL,
        .step = step,
        .type = facts->type,
        .correlation = call->correlation,
        .process = (uint32_t)getpid(),
        .device = cupti_current_device(),
        .kept = kept,
        .address = facts->address,
        .size = facts->size,
        .threshold = facts->threshold,
        .time = cupti_clock_at(call->begin_ns),
        .used = facts->used,
    };

    if (facts->type)
        cupti_buffer_append(&record);
}

static void pool_changed(const struct profiler_call *call)
{
    const struct {
        CUmemoryPool pool;
        size_t kept;
    } *trim = call->arguments;
    struct cupti_pool_facts facts;

    if (!strcmp(call->name, "cuMemPoolDestroy")) {
        append_pool(call, &destroyed, CUPTI_POOL_DESTROYED, 0);
    } else if (!strcmp(call->name, "cuMemPoolCreate")) {
        facts = pool_facts(**(CUmemoryPool *const *)call->arguments);
        append_pool(call, &facts, CUPTI_POOL_CREATED, 0);
    } else if (!strcmp(call->name, "cuMemPoolTrimTo")) {
        facts = pool_facts(trim->pool);
        append_pool(call, &facts, CUPTI_POOL_TRIMMED, trim->kept);
    }
}

/* ---- allocations ---- */

/* Memory of a pool belongs to no context. */
static uint32_t context_of(const struct memory *memory)
{
    CUcontext current;

    return memory->context ? cupti_context_number(memory->context)
                           : cupti_current_context(&current);
}

static void append_memory(const struct profiler_call *call, const struct memory *memory,
                          uint32_t step)
{
    bool is_async = strstr(call->name, "Async") != NULL;
    struct cupti_memory record = {
        .kind = CUPTI_KIND_MEMORY2,
        .step = step,
        .memory_kind = kind_of(memory),
        .correlation = call->correlation,
        .address = memory->address,
        .bytes = memory->size,
        .time = cupti_clock_at(call->begin_ns),
        .process = (uint32_t)getpid(),
        .device = (uint32_t)memory->device,
        .context = context_of(memory),
        .stream = is_async ? cupti_stream_number(cupti_call_stream(call)) : CUPTI_INVALID_ID,
        .is_async = is_async,
    };

    if (memory->pool)
        record.pool = pool_facts(memory->pool);
    if (memory->size)
        cupti_buffer_append(&record);
}

static bool is_of_memory(const struct profiler_call *call, uint32_t kind)
{
    return !call->runtime_cbid && call->arguments && cupti_call_begins(call, "cuMem") &&
           cupti_kind_is_on(kind);
}

void cupti_memory_enter(const struct profiler_call *call)
{
    if (is_of_memory(call, CUPTI_KIND_MEMORY2) && frees(call->name))
        freed = look_at(*(const CUdeviceptr *)call->arguments);
    if (is_of_memory(call, CUPTI_KIND_MEMORY_POOL) && !strcmp(call->name, "cuMemPoolDestroy"))
        destroyed = pool_facts(*(const CUmemoryPool *)call->arguments);
}

static void memory_changed(const struct profiler_call *call)
{
    struct memory made;

    if (cupti_call_is_captured(call))
        return;
    if (frees(call->name)) {
        append_memory(call, &freed, CUPTI_MEMORY_RELEASED);
    } else if (allocates(call->name)) {
        made = look_at(**(const CUdeviceptr *const *)call->arguments);
        append_memory(call, &made, CUPTI_MEMORY_ALLOCATED);
    }
}

/* What a kind that went on within the call has missed stands for nothing later. */
void cupti_memory_leave(const struct profiler_call *call)
{
    if (call->result == CUDA_SUCCESS && is_of_memory(call, CUPTI_KIND_MEMORY2))
        memory_changed(call);
    if (call->result == CUDA_SUCCESS && is_of_memory(call, CUPTI_KIND_MEMORY_POOL))
        pool_changed(call);
    freed.size = 0;
    destroyed.type = 0;
}
