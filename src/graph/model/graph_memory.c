/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that graphs allocate and free. A node's address is known when the node is made, and is the
 * same in every launch. So the memory is reserved then. It is released when no graph can allocate
 * it any more and the program does not own it. A launch only changes the owner.
 */
#include "graph_memory.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "graph_objects.h"

#define DEVICES_MAX 64

static struct map by_address;
static _Atomic size_t known_count; /* entries of by_address, for readers without the lock */
static struct graph_memory_usage usages[DEVICES_MAX];

static void count_bytes(uint64_t *sum, uint64_t *high, uint64_t more)
{
    *sum += more;
    if (*sum > *high)
        *high = *sum;
}

static struct graph_memory_usage *usage_of(const struct graph_memory *memory)
{
    return &usages[memory->device];
}

/* ---- from the first node to the last ---- */

static CUresult check_params(const CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    const CUmemPoolProps *props = &params->poolProps;

    if (props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED || params->bytesize == 0 ||
        (params->accessDescCount && !params->accessDescs))
        return CUDA_ERROR_INVALID_VALUE;
    if (props->location.type != CU_MEM_LOCATION_TYPE_DEVICE || props->handleTypes)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (props->location.id < 0 || props->location.id >= DEVICES_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < params->accessDescCount; i++) {
        const CUmemLocation *location = &params->accessDescs[i].location;

        if (location->type != CU_MEM_LOCATION_TYPE_DEVICE || location->id != props->location.id)
            return CUDA_ERROR_NOT_SUPPORTED;
    }
    return CUDA_SUCCESS;
}

static void copy_params(const CUDA_MEM_ALLOC_NODE_PARAMS *params, struct graph_memory *memory)
{
    memory->params = *params;
    memory->params.accessDescs = memory->access;
    memory->params.accessDescCount = params->accessDescCount ? 1 : 0;
    if (params->accessDescCount)
        memory->access[0] = params->accessDescs[0];
    memory->size = params->bytesize;
    memory->device = params->poolProps.location.id;
}

/* Partner graph_memory_exists(), whose caller has the address from a call that returned before. */
static void publish_count(void)
{
    atomic_store_explicit(&known_count, by_address.count, memory_order_relaxed);
}

static void give_back(struct graph_memory *memory)
{
    map_remove(&by_address, memory->address);
    publish_count();
    usage_of(memory)->reserved -= memory->size;
    if (memory->was_live)
        usage_of(memory)->used -= memory->size;
    graph_backend.memory_give_locked(memory);
    memory->address = 0;
}

static CUresult take_addresses(CUcontext context, struct graph_memory *memory)
{
    CUresult result = graph_backend.memory_take_locked(context, memory);

    if (result)
        return result;
    count_bytes(&usage_of(memory)->reserved, &usage_of(memory)->reserved_high, memory->size);
    memory->params.dptr = memory->address;
    if (!map_put(&by_address, memory->address, memory)) {
        publish_count();
        return CUDA_SUCCESS;
    }
    give_back(memory);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult create_memory(const CUDA_MEM_ALLOC_NODE_PARAMS *params, CUcontext context,
                              struct graph_memory **ret_memory)
{
    struct graph_memory *memory = calloc(1, sizeof(*memory));

    if (!memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    copy_params(params, memory);
    CUresult result = take_addresses(context, memory);
    if (result)
        free(memory);
    else
        *ret_memory = memory;
    return result;
}

/* Memory that a launch left allocated belongs to the program until the program frees it. */
static void end_if_unused(struct graph_memory *memory)
{
    if (memory->address && memory->allocators == 0 && !memory->live)
        give_back(memory);
    if (!memory->address && memory->nodes == 0)
        free(memory);
}

void graph_memory_add_node(struct graph_memory *memory, CUgraphNodeType type)
{
    memory->nodes++;
    memory->allocators += type == CU_GRAPH_NODE_TYPE_MEM_ALLOC;
}

void graph_memory_settle(struct graph_memory *memory, CUgraphNodeType type, uint64_t graph)
{
    if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        memory->home = graph;
    else if (memory->home == graph)
        memory->freed_at_home = true;
    else
        memory->freed_elsewhere = true;
}

void graph_memory_remove_node(struct graph_memory *memory, CUgraphNodeType type)
{
    memory->nodes--;
    memory->allocators -= type == CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    end_if_unused(memory);
}

CUresult graph_work_allocate(const CUDA_MEM_ALLOC_NODE_PARAMS *params, CUcontext context,
                             struct graph_work *ret_work)
{
    struct graph_work work = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
    CUresult result = check_params(params);

    if (!result)
        result = create_memory(params, context, &work.memory);
    if (result)
        return result;
    graph_memory_add_node(work.memory, work.type);
    *ret_work = work;
    return CUDA_SUCCESS;
}

static bool frees(const struct graph *graph, const struct graph_memory *memory)
{
    list_for_each (struct graph_node, node, &graph->nodes, in_graph) {
        if (node->work.type == CU_GRAPH_NODE_TYPE_MEM_FREE && node->work.memory == memory)
            return true;
    }
    return false;
}

/* Either the allocating graph frees the memory, or other graphs do. */
CUresult graph_work_free(const struct graph *graph, CUdeviceptr address,
                         struct graph_work *ret_work)
{
    struct graph_memory *memory = graph_memory_find_locked(address);
    bool is_home = graph && memory && memory->home == graph->handle;

    if (!graph || !memory || frees(graph, memory))
        return CUDA_ERROR_INVALID_VALUE;
    if (is_home ? memory->freed_elsewhere : memory->freed_at_home)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_work = (struct graph_work){.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .memory = memory};
    graph_memory_add_node(memory, ret_work->type);
    return CUDA_SUCCESS;
}

static bool is_memory_node(const struct graph_node *node)
{
    return node->work.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
           node->work.type == CU_GRAPH_NODE_TYPE_MEM_FREE;
}

bool graph_has_memory(const struct graph *graph)
{
    list_for_each (struct graph_node, node, &graph->nodes, in_graph) {
        if (is_memory_node(node))
            return true;
        if (node->work.type == CU_GRAPH_NODE_TYPE_GRAPH && graph_has_memory(node->work.child))
            return true;
    }
    return false;
}

/* ---- launches ---- */

struct graph_memory *graph_exec_memory(const struct graph_exec *exec, unsigned index)
{
    const struct graph_node *node = exec->nodes[index];

    return is_memory_node(node) ? node->work.memory : NULL;
}

static void begin_plan(const struct graph_exec *exec)
{
    for (unsigned i = 0; i < exec->count; i++) {
        struct graph_memory *memory = graph_exec_memory(exec, i);

        if (memory)
            memory->will_live = memory->live;
    }
}

/* In the order of the nodes, which is that of their dependencies. */
CUresult graph_memory_check_launch_locked(const struct graph_exec *exec)
{
    bool frees_itself = exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;

    begin_plan(exec);
    for (unsigned i = 0; i < exec->count; i++) {
        struct graph_memory *memory = graph_exec_memory(exec, i);

        if (!memory)
            continue;
        bool allocates = exec->nodes[i]->work.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC;
        if (allocates && memory->will_live && !(frees_itself && memory->live))
            return CUDA_ERROR_INVALID_VALUE;
        if (!allocates && !memory->will_live)
            return CUDA_ERROR_INVALID_VALUE;
        memory->will_live = allocates;
    }
    return CUDA_SUCCESS;
}

static void become(struct graph_memory *memory, bool live)
{
    struct graph_memory_usage *usage = usage_of(memory);

    if (live && !memory->was_live)
        count_bytes(&usage->used, &usage->used_high, memory->size);
    memory->was_live |= live;
    memory->live = live;
}

void graph_memory_launched_locked(const struct graph_exec *exec)
{
    for (unsigned i = 0; i < exec->count; i++) {
        struct graph_memory *memory = graph_exec_memory(exec, i);

        if (!memory)
            continue;
        bool live = exec->nodes[i]->work.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC;

        become(memory, live);
        if (!live)
            end_if_unused(memory);
    }
}

/* ---- frees by the program ---- */

/* Partner publish_count(). */
bool graph_memory_exists(void)
{
    return atomic_load_explicit(&known_count, memory_order_relaxed) > 0;
}

struct graph_memory *graph_memory_find_locked(CUdeviceptr address)
{
    return map_get(&by_address, address);
}

CUresult graph_memory_check_free_locked(const struct graph_memory *memory)
{
    return memory->live && !memory->freed_at_home ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void graph_memory_freed_locked(struct graph_memory *memory)
{
    become(memory, false);
    end_if_unused(memory);
}

struct graph_memory_usage *graph_memory_usage_locked(CUdevice device)
{
    bool is_one = device >= 0 && device < DEVICES_MAX && graph_backend.device_exists(device);

    return is_one ? &usages[device] : NULL;
}
