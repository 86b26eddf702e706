/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segments of graphs are sent to the server node by node. Only the last command waits: it has the
 * driver's graph made and returns the driver's error.
 */
#include "graph_describe.h"

#include <stdlib.h>

#include "client.h"
#include "client_copy.h"
#include "exec_plan.h"
#include "graph_backend.h"
#include "graph_condition.h"
#include "host_register.h"
#include "wire_calls.h"

#define EDGES_AT_ONCE 2048u

/* ---- nodes ---- */

static CUresult describe_kernel(const struct graph_work *work, uint64_t segment, uint32_t number)
{
    const struct graph_kernel *kernel = &work->kernel;
    const CUlaunchAttributeValue *priority =
        graph_kernel_attribute(kernel, CU_LAUNCH_ATTRIBUTE_PRIORITY);
    struct wire_fnGraphKernelNode in = {
        .graph = segment,
        .node = number,
        .shape = {kernel->grid[0], kernel->grid[1], kernel->grid[2], kernel->block[0],
                  kernel->block[1], kernel->block[2], kernel->shared},
        .priority = priority ? priority->priority : 0,
        .attributes = kernel->attributes,
        .attributes_size = kernel->attribute_count * (uint32_t)sizeof(*kernel->attributes),
        .params = kernel->buffer,
        .params_size = (uint32_t)kernel->buffer_size,
    };
    struct function *function;
    CUresult result = graph_node_function(work, &function);

    if (result != CUDA_SUCCESS)
        return result;
    in.f = function->handle;
    channel_lock(&client->channel);
    result = wire_fnGraphKernelNode(&client->channel, &in);
    channel_unlock(&client->channel);
    return result;
}

static CUresult describe_copy(const struct graph_work *work, const struct exec_plan *plan,
                              uint32_t index)
{
    const struct plan_node *node = &plan->nodes[index];
    struct box box;
    enum place dst, src;
    CUresult result = graph_node_box(work, &box, &dst, &src);

    if (result != CUDA_SUCCESS)
        return result;
    if (node->kind == PLAN_UP)
        box_set_src(&box, plan->states[index].staging);
    if (node->kind == PLAN_DOWN)
        box_set_dst(&box, plan->states[index].staging);
    copy_on_device(&box);

    const struct wire_fnGraphCopyNode in = {
        .graph = plan->segments[node->segment],
        .node = node->number,
        .dst = box.dst,
        .src = box.src,
        .dst_pitch = box.dst_pitch,
        .dst_height = box.dst_height,
        .src_pitch = box.src_pitch,
        .src_height = box.src_height,
        .width = box.width,
        .height = box.height,
        .depth = box.depth,
    };
    channel_lock(&client->channel);
    result = wire_fnGraphCopyNode(&client->channel, &in);
    channel_unlock(&client->channel);
    return result;
}

static CUresult describe_memset(const struct graph_work *work, uint64_t segment, uint32_t number)
{
    const CUDA_MEMSET_NODE_PARAMS *fill = &work->fill;
    const struct wire_fnGraphMemsetNode in = {
        .graph = segment,
        .node = number,
        .dst = host_register_on_device(fill->dst),
        .pitch = fill->pitch,
        .value = fill->value,
        .element_size = fill->elementSize,
        .width = fill->width,
        .height = fill->height,
    };
    CUresult result;

    channel_lock(&client->channel);
    result = wire_fnGraphMemsetNode(&client->channel, &in);
    channel_unlock(&client->channel);
    return result;
}

/* With how many nodes each of its graphs has; they have the numbers behind its own. */
static CUresult describe_conditional(const struct graph_conditional *conditional, uint64_t segment,
                                     uint32_t number)
{
    const struct graph_condition *condition = conditional->condition;
    uint32_t counts[GRAPH_BODIES_MAX];
    const struct wire_fnGraphConditionalNode in = {
        .graph = segment,
        .node = number,
        .condition = condition->handle,
        .kind = conditional->type,
        .default_value = condition->default_value,
        .flags = condition->flags,
        .bodies = counts,
        .bodies_size = conditional->size * (uint32_t)sizeof(*counts),
    };
    CUresult result;

    for (unsigned i = 0; i < conditional->size; i++)
        counts[i] = graph_count_all(conditional->bodies[i]);
    channel_lock(&client->channel);
    result = wire_fnGraphConditionalNode(&client->channel, &in);
    channel_unlock(&client->channel);
    return result;
}

CUresult exec_describe_node(const struct graph_exec *exec, uint32_t index)
{
    const struct exec_plan *plan = exec->owner;
    const struct plan_node *node = &plan->nodes[index];
    const struct graph_work *work = &exec->nodes[index]->work;

    switch (work->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return describe_kernel(work, plan->segments[node->segment], node->number);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return describe_copy(work, plan, index);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        return describe_conditional(&work->conditional, plan->segments[node->segment],
                                    node->number);
    default:
        return describe_memset(work, plan->segments[node->segment], node->number);
    }
}

CUresult exec_describe_enabled(const struct graph_exec *exec, uint32_t index)
{
    const struct exec_plan *plan = exec->owner;
    const struct wire_cuGraphNodeSetEnabled in = {
        .graph = plan->segments[plan->nodes[index].segment],
        .node = plan->nodes[index].number,
        .enabled = !exec->nodes[index]->disabled,
    };
    CUresult result;

    channel_lock(&client->channel);
    result = wire_cuGraphNodeSetEnabled(&client->channel, &in);
    channel_unlock(&client->channel);
    return result;
}

/* ---- whole segments ---- */

/* How many nodes there are in a segment, and how many of them do nothing. */
struct census {
    uint32_t nodes, empty;
};

static struct census count_segment(const struct exec_plan *plan, uint32_t segment)
{
    struct census census = {0};

    for (uint32_t i = 0; i < plan->node_count; i++) {
        if (!plan_in_segment(&plan->nodes[i]) || plan->nodes[i].segment != segment)
            continue;
        census.nodes++;
        census.empty += !plan->states[i].acts;
    }
    return census;
}

static CUresult create_segment(struct exec_plan *plan, uint32_t segment, uint32_t nodes)
{
    struct wire_fnGraphCreate in = {.device = plan->device->index, .nodes = nodes};
    CUresult result;

    if (!plan->segments[segment])
        plan->segments[segment] = handles_add(&client->handles, WIRE_GRAPH, plan);
    if (!plan->segments[segment])
        return CUDA_ERROR_OUT_OF_MEMORY;
    in.graph = plan->segments[segment];
    channel_lock(&client->channel);
    result = wire_fnGraphCreate(&client->channel, &in);
    channel_unlock(&client->channel);
    return result;
}

static CUresult send_edges(uint64_t segment, const uint32_t (*pairs)[2], uint32_t count)
{
    const struct wire_fnGraphEdges in = {
        .graph = segment, .edges = pairs, .edges_size = count * (uint32_t)sizeof(*pairs)};
    CUresult result;

    if (count == 0)
        return CUDA_SUCCESS;
    channel_lock(&client->channel);
    result = wire_fnGraphEdges(&client->channel, &in);
    channel_unlock(&client->channel);
    return result;
}

/* Into a graph of a conditional node no edge leads. */
static bool is_into_body(const struct graph_exec *exec, const struct plan_edge *edge)
{
    const struct graph_node *from = exec->nodes[edge->from], *to = exec->nodes[edge->to];

    return from->work.type == CU_GRAPH_NODE_TYPE_CONDITIONAL && to->graph->in == from;
}

static CUresult describe_edges(const struct graph_exec *exec, uint32_t segment,
                               const struct plan_edge *edges, uint32_t count)
{
    const struct exec_plan *plan = exec->owner;
    uint32_t pairs[EDGES_AT_ONCE][2], gathered = 0;
    CUresult result = CUDA_SUCCESS;

    for (uint32_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        const struct plan_node *from = &plan->nodes[edges[i].from], *to = &plan->nodes[edges[i].to];

        if (to->segment != segment || !plan_edge_in_segment(plan->nodes, &edges[i]) ||
            is_into_body(exec, &edges[i]))
            continue;
        pairs[gathered][0] = from->number | edges[i].port << 24;
        pairs[gathered][1] = to->number;
        if (++gathered < EDGES_AT_ONCE)
            continue;
        result = send_edges(plan->segments[segment], pairs, gathered);
        gathered = 0;
    }
    return result != CUDA_SUCCESS ? result : send_edges(plan->segments[segment], pairs, gathered);
}

static CUresult describe_nodes(const struct graph_exec *exec, uint32_t segment)
{
    const struct exec_plan *plan = exec->owner;
    CUresult result = CUDA_SUCCESS;

    for (uint32_t i = 0; i < plan->node_count && result == CUDA_SUCCESS; i++)
        if (plan->states[i].acts && plan->nodes[i].segment == segment)
            result = exec_describe_node(exec, i);
    return result;
}

static CUresult instantiate_segment(const struct graph_exec *exec, uint32_t segment, uint32_t empty)
{
    const struct exec_plan *plan = exec->owner;
    const struct wire_cuGraphInstantiateWithFlags in = {
        .graph = plan->segments[segment], .flags = (uint32_t)exec->flags, .empty = empty};
    CUresult result = wire_cuGraphInstantiateWithFlags(&client->channel, &in);

    for (uint32_t i = 0; i < plan->node_count && result == CUDA_SUCCESS; i++)
        if (plan->states[i].disabled && plan->states[i].acts && plan->nodes[i].segment == segment)
            result = exec_describe_enabled(exec, i);
    return result;
}

CUresult exec_describe_segment(const struct graph_exec *exec, uint32_t segment,
                               const struct plan_edge *edges, uint32_t edge_count)
{
    struct census census = count_segment(exec->owner, segment);
    CUresult result;

    if (census.nodes == census.empty)
        return CUDA_SUCCESS;
    result = create_segment(exec->owner, segment, census.nodes);
    if (result == CUDA_SUCCESS)
        result = describe_nodes(exec, segment);
    if (result == CUDA_SUCCESS)
        result = describe_edges(exec, segment, edges, edge_count);
    return result != CUDA_SUCCESS ? result : instantiate_segment(exec, segment, census.empty);
}

CUresult exec_describe(const struct graph_exec *exec, const struct plan_edge *edges,
                       uint32_t edge_count)
{
    const struct exec_plan *plan = exec->owner;
    CUresult result = CUDA_SUCCESS;

    for (uint32_t segment = 0; segment < plan->phase_count && result == CUDA_SUCCESS; segment++)
        result = exec_describe_segment(exec, segment, edges, edge_count);
    return result;
}
