/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launchable graphs: in which segment each node goes, and what a node needs to be launched. A
 * change that leaves a node in its segment is sent to the server as it is. After any other the
 * whole graph is planned anew.
 */
#include "exec_plan.h"

#include <stdlib.h>

#include "cleanup.h"
#include "client_call.h"
#include "client_capture.h"
#include "client_event.h"
#include "client_memory.h"
#include "client_prototypes.h"
#include "graph_backend.h"
#include "graph_describe.h"
#include "host_function.h"
#include "wire_calls.h"

/* ---- kinds of nodes ---- */

static bool copies_array(const struct graph_work *work)
{
    return work->type == CU_GRAPH_NODE_TYPE_MEMCPY &&
           (work->copy.dstMemoryType == CU_MEMORYTYPE_ARRAY ||
            work->copy.srcMemoryType == CU_MEMORYTYPE_ARRAY);
}

/* Copies of arrays are rare, so they are steps rather than parts of segments. */
static enum plan_kind kind_of_copy(const struct box *box, enum place dst, enum place src)
{
    if (box_has_array(box))
        return PLAN_STEP;
    if (dst != PLACE_DEVICE && src != PLACE_DEVICE)
        return PLAN_STEP;
    if (src == PLACE_PAGEABLE)
        return PLAN_UP;
    return dst == PLACE_PAGEABLE ? PLAN_DOWN : PLAN_DEVICE;
}

static CUresult classify(const struct graph_work *work, enum plan_kind *ret_kind, bool *ret_acts)
{
    struct box box;
    enum place dst, src;
    CUresult result = CUDA_SUCCESS;

    *ret_kind = PLAN_DEVICE;
    *ret_acts = false;
    switch (work->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
    case CU_GRAPH_NODE_TYPE_MEMSET:
        *ret_acts = true;
        break;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        result = graph_node_box(work, &box, &dst, &src);
        if (result == CUDA_SUCCESS) {
            *ret_kind = kind_of_copy(&box, dst, src);
            *ret_acts = *ret_kind != PLAN_STEP;
        }
        break;
    case CU_GRAPH_NODE_TYPE_HOST:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        *ret_kind = PLAN_STEP;
        break;
    default:
        break;
    }
    return result;
}

/* The program cannot take part in bodies of conditional nodes: only the GPU knows whether they run.
 */
static bool is_possible(const struct graph_node *node, enum plan_kind kind)
{
    return !node->in_body || kind == PLAN_DEVICE;
}

static CUresult classify_all(const struct graph_exec *exec, struct exec_plan *plan)
{
    CUresult result = CUDA_SUCCESS;

    for (uint32_t i = 0; i < plan->node_count && result == CUDA_SUCCESS; i++) {
        plan->states[i].disabled = exec->nodes[i]->disabled;
        result = classify(&exec->nodes[i]->work, &plan->nodes[i].kind, &plan->states[i].acts);
        if (result == CUDA_SUCCESS && !is_possible(exec->nodes[i], plan->nodes[i].kind))
            result = CUDA_ERROR_NOT_SUPPORTED;
    }
    return result;
}

/* ---- edges, with child graphs laid open ---- */

struct edges {
    struct plan_edge *edges;
    uint32_t count, capacity;
};

static CUresult add_edge(struct edges *edges, const struct graph_node *from, uint32_t to,
                         uint32_t port)
{
    if (edges->count == edges->capacity) {
        uint32_t capacity = edges->capacity ? 2 * edges->capacity : 64;
        struct plan_edge *grown = realloc(edges->edges, capacity * sizeof(*grown));

        if (!grown)
            return CUDA_ERROR_OUT_OF_MEMORY;
        edges->edges = grown;
        edges->capacity = capacity;
    }
    edges->edges[edges->count++] = (struct plan_edge){from->index, to, port};
    return CUDA_SUCCESS;
}

/* A child graph is done when all of its nodes are that no other node of it depends on. The child
 * graph's own node represents its beginning. A conditional node is done when the graphs inside are,
 * so nothing depends on these; but they depend on it, and go where it goes. */
static CUresult add_edges_from(struct edges *edges, const struct graph_node *from, uint32_t to)
{
    CUresult result = CUDA_SUCCESS;

    if (from->work.type != CU_GRAPH_NODE_TYPE_GRAPH || from->work.child->count == 0)
        return add_edge(edges, from, to, 0);
    list_for_each (struct graph_node, node, &from->work.child->nodes, in_graph) {
        if (node->dependents.count == 0 && result == CUDA_SUCCESS)
            result = add_edges_from(edges, node, to);
    }
    return result;
}

/* Only a kernel can begin before its predecessors have ended. */
static uint32_t port_of(const struct graph_edge *edge, const struct graph_node *to)
{
    bool may = edge->node->work.type == CU_GRAPH_NODE_TYPE_KERNEL &&
               to->work.type == CU_GRAPH_NODE_TYPE_KERNEL;

    return may ? edge->data.from_port | (uint32_t)edge->data.type << 4 : 0;
}

static CUresult add_edges_of(struct edges *edges, const struct graph_edge *edge,
                             const struct graph_node *to)
{
    uint32_t port = port_of(edge, to);

    return port ? add_edge(edges, edge->node, to->index, port)
                : add_edges_from(edges, edge->node, to->index);
}

static CUresult add_edges_to(struct edges *edges, const struct graph_node *node)
{
    CUresult result = CUDA_SUCCESS;

    if (node->dependencies.count == 0 && node->graph->in)
        return add_edge(edges, node->graph->in, node->index, 0);
    for (unsigned i = 0; i < node->dependencies.count && result == CUDA_SUCCESS; i++)
        result = add_edges_of(edges, &node->dependencies.edges[i], node);
    return result;
}

static CUresult gather_edges(const struct graph_exec *exec, struct edges *edges)
{
    CUresult result = CUDA_SUCCESS;

    for (unsigned i = 0; i < exec->count && result == CUDA_SUCCESS; i++)
        result = add_edges_to(edges, exec->nodes[i]);
    return result;
}

/* ---- steps ---- */

static CUresult list_steps(const struct graph_exec *exec, struct exec_plan *plan)
{
    plan->steps = calloc(plan->node_count + 1, sizeof(*plan->steps));
    if (!plan->steps)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (uint32_t phase = 0; phase < plan->phase_count; phase++)
        for (uint32_t i = 0; i < plan->node_count; i++)
            if (plan_has_step(&plan->nodes[i]) && plan->nodes[i].phase == phase)
                plan->steps[plan->step_count++] = i;
    if (plan->step_count == 0 && !exec->has_memory && !graph_exec_keeps(exec))
        return CUDA_SUCCESS;
    return client_cuEventCreate(&plan->behind, CU_EVENT_DISABLE_TIMING);
}

static CUresult take_staging(const struct graph_exec *exec, struct exec_plan *plan)
{
    CUresult result = CUDA_SUCCESS;

    for (uint32_t i = 0; i < plan->node_count && result == CUDA_SUCCESS; i++) {
        const struct graph_work *work = &exec->nodes[i]->work;
        struct box box;
        enum place dst, src;

        if (plan->nodes[i].kind != PLAN_UP && plan->nodes[i].kind != PLAN_DOWN &&
            !copies_array(work))
            continue;
        result = graph_node_box(work, &box, &dst, &src);
        if (result == CUDA_SUCCESS && !box_is_empty(&box) &&
            (dst == PLACE_PAGEABLE || src == PLACE_PAGEABLE))
            result = memory_take(memory_host_heap(), &kind_pinned, plan->context,
                                 box.width * box.height * box.depth, &plan->states[i].staging);
    }
    return result;
}

/* ---- plans ---- */

static void destroy_segment(uint64_t handle)
{
    const struct wire_cuGraphExecDestroy in = {.graph = handle};

    if (!handle)
        return;
    handles_remove(&client->handles, WIRE_GRAPH, handle);
    channel_lock(&client->channel);
    wire_cuGraphExecDestroy(&client->channel, &in);
    channel_unlock(&client->channel);
}

static void free_staging(void *address)
{
    free(heap_give(memory_host_heap(), (uintptr_t)address));
}

/* Work that was launched may still use the staging memory. */
static void give_staging(struct exec_plan *plan)
{
    struct fence fence = event_fence(plan->behind);

    for (uint32_t i = 0; i < plan->node_count; i++) {
        if (plan->states[i].staging)
            host_function_when(fence, free_staging, (void *)plan->states[i].staging);
        plan->states[i].staging = 0;
    }
}

void exec_later(const struct graph_exec *after, CUhostFn function, void *user)
{
    const struct exec_plan *plan = after ? after->owner : NULL;

    host_function_when(event_fence(plan ? plan->behind : NULL), function, user);
}

static void plan_free(struct exec_plan *plan)
{
    for (uint32_t phase = 0; plan->segments && phase < plan->phase_count; phase++)
        destroy_segment(plan->segments[phase]);
    if (plan->states)
        give_staging(plan);
    if (plan->behind)
        client_cuEventDestroy_v2(plan->behind);
    free(plan->nodes);
    free(plan->states);
    free(plan->segments);
    free(plan->steps);
    free(plan);
}

static CUresult plan_fill(const struct graph_exec *exec, struct exec_plan *plan,
                          struct edges *edges)
{
    CUresult result = context_enter(&plan->context);

    if (result != CUDA_SUCCESS)
        return result;
    plan->device = plan->context->device;
    plan->nodes = calloc(exec->count + 1, sizeof(*plan->nodes));
    plan->states = calloc(exec->count + 1, sizeof(*plan->states));
    if (!plan->nodes || !plan->states)
        return CUDA_ERROR_OUT_OF_MEMORY;
    plan->node_count = exec->count;
    result = classify_all(exec, plan);
    if (result == CUDA_SUCCESS)
        result = gather_edges(exec, edges);
    if (result != CUDA_SUCCESS)
        return result;
    plan->phase_count = plan_make(plan->nodes, plan->node_count, edges->edges, edges->count);
    plan->segments = calloc(plan->phase_count + 1, sizeof(*plan->segments));
    result = plan->segments ? list_steps(exec, plan) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS)
        result = take_staging(exec, plan);
    return result == CUDA_SUCCESS ? exec_describe(exec, edges->edges, edges->count) : result;
}

CUresult exec_plan_create(struct graph_exec *exec)
{
    struct exec_plan *plan = calloc(1, sizeof(*plan));
    struct edges edges = {0};

    if (!plan)
        return CUDA_ERROR_OUT_OF_MEMORY;
    plan->exec = exec;
    exec->owner = plan;
    CUresult result = plan_fill(exec, plan, &edges);
    free(edges.edges);
    if (result != CUDA_SUCCESS) {
        plan_free(plan);
        exec->owner = NULL;
    }
    return result;
}

CUresult exec_replay(struct exec_plan *plan, uint64_t segment)
{
    struct edges edges = {0};
    CUresult result = gather_edges(plan->exec, &edges);

    for (uint32_t phase = 0; phase < plan->phase_count && result == CUDA_SUCCESS; phase++)
        if (plan->segments[phase] == segment)
            result = exec_describe_segment(plan->exec, phase, edges.edges, edges.count);
    free(edges.edges);
    /* Its module has been unloaded: it could not be launched before either. */
    return result == CUDA_ERROR_INVALID_HANDLE ? CUDA_SUCCESS : result;
}

static bool find_in_plan(const struct exec_plan *plan, uint32_t segment, uint32_t number,
                         uint32_t *ret_index)
{
    for (uint32_t i = 0; i < plan->node_count; i++) {
        const struct plan_node *node = &plan->nodes[i];
        if (!plan_in_segment(node) || node->number != number ||
            (uint32_t)plan->segments[node->segment] != segment)
            continue;
        *ret_index = i;
        return true;
    }
    return false;
}

bool exec_find_node(uint32_t segment, uint32_t number, uint64_t *ret_exec, uint32_t *ret_index)
{
    _cleanup_mutex_ pthread_mutex_t *lock = call_mutex_hold(&client_graph_lock);
    const struct exec_plan *plan = handles_get_by_half(&client->handles, WIRE_GRAPH, segment);

    if (!plan || !find_in_plan(plan, segment, number, ret_index))
        return false;
    *ret_exec = plan->exec->handle;
    return true;
}

void exec_plan_destroy(struct graph_exec *exec)
{
    plan_free(exec->owner);
    exec->owner = NULL;
}

static CUresult plan_anew(struct graph_exec *exec)
{
    struct exec_plan *before = exec->owner, *after;
    CUresult result = exec_plan_create(exec);

    if (result != CUDA_SUCCESS) {
        exec->owner = before;
        return result;
    }
    give_staging(before);
    after = exec->owner;
    if (before->behind) {
        CUevent unused = after->behind;

        after->behind = before->behind; /* the next launch stays behind the last one */
        before->behind = unused;
    }
    plan_free(before);
    return CUDA_SUCCESS;
}

/* It has been enabled or disabled, or it does something else. */
static CUresult tell(const struct graph_exec *exec, uint32_t index)
{
    struct plan_state *state = &((struct exec_plan *)exec->owner)->states[index];
    bool disabled = exec->nodes[index]->disabled;

    if (!state->acts)
        return CUDA_SUCCESS;
    if (state->disabled == disabled)
        return exec_describe_node(exec, index);
    state->disabled = disabled;
    return exec_describe_enabled(exec, index);
}

CUresult exec_plan_set(struct graph_exec *exec, struct graph_node *node)
{
    const struct exec_plan *plan = exec->owner;
    const struct plan_node *place = &plan->nodes[node->index];
    const struct plan_state *state = &plan->states[node->index];
    enum plan_kind kind;
    bool acts;
    CUresult result = classify(&node->work, &kind, &acts);

    if (result != CUDA_SUCCESS)
        return result;
    if (node->work.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        return plan_anew(exec); /* it looks at another value */
    if (state->disabled == node->disabled &&
        (kind != place->kind || acts != state->acts || state->staging || copies_array(&node->work)))
        return plan_anew(exec);
    return tell(exec, node->index);
}
