/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the driver's graph from the description. A node's priority depends on the client's limit.
 * When that changes, the graph is rebuilt before its next launch.
 */
#include "graph_build.h"

#include <stdlib.h>

#include "capacity.h"
#include "cuda_graph.h"
#include "driver_stream.h"
#include "function.h"
#include "graph_conditional.h"
#include "graph_ending.h"
#include "kernel_call.h"
#include "memory.h"
#include "window.h"

/* Measured: 43 graphs of 20 nodes share a block of 5.6 MiB, and 1000 nodes take 2.7 MiB. */
#define NODES_IN_A_SLOT 24u

/* ---- nodes in the driver's form ---- */

static bool is_host(const struct graph *graph, uint64_t address)
{
    const struct window *window = graph->session->window;

    return address >= window->host_base &&
           address < window_part_end(window, window->devices->count);
}

/* A copy node needs the kind of memory of each side, and that must not change. */
static CUDA_MEMCPY3D name_sides(const struct graph *graph, const CUDA_MEMCPY3D *described)
{
    CUDA_MEMCPY3D copy = *described;

    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    if (is_host(graph, copy.srcDevice)) {
        copy.srcMemoryType = CU_MEMORYTYPE_HOST;
        copy.srcHost = (const void *)(uintptr_t)copy.srcDevice;
    }
    if (is_host(graph, copy.dstDevice)) {
        copy.dstMemoryType = CU_MEMORYTYPE_HOST;
        copy.dstHost = (void *)(uintptr_t)copy.dstDevice;
    }
    return copy;
}

static CUDA_MEMSET_NODE_PARAMS fill_params(const struct wire_fnMemset *in)
{
    return (CUDA_MEMSET_NODE_PARAMS){
        .dst = in->dst,
        .pitch = in->pitch,
        .value = in->value,
        .elementSize = in->element_size,
        .width = in->width,
        .height = in->height,
    };
}

/* ---- building ---- */

static CUresult set_attributes(const struct graph *graph, const struct graph_node *node)
{
    const struct graph_kernel *kernel = node->kernel;
    CUlaunchAttributeValue priority = {
        .priority = stream_grant_priority(graph->session, graph->device, kernel->priority)};
    CUresult result = CUDA_SUCCESS;

    if (!driver.cuGraphKernelNodeSetAttribute)
        return kernel->attribute_count ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
    if (graph->flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY)
        result = driver.cuGraphKernelNodeSetAttribute(node->driver, CU_LAUNCH_ATTRIBUTE_PRIORITY,
                                                      &priority);
    for (unsigned i = 0; i < kernel->attribute_count && result == CUDA_SUCCESS; i++)
        result = driver.cuGraphKernelNodeSetAttribute(node->driver, kernel->attributes[i].id,
                                                      &kernel->attributes[i].value);
    return result;
}

static CUresult add_kernel(struct graph *graph, struct graph_node *node, const CUgraphNode *before,
                           size_t count)
{
    struct launch launch = node->kernel->launch;
    struct kernel_call call;
    void *copy;
    CUresult result = graph_translate_params(graph, &launch, &copy);

    if (result != CUDA_SUCCESS)
        return result;
    kernel_call_init(&call, &launch);
    result = driver.cuGraphAddKernelNode_v2(&node->driver, graph_driver_of(graph, node), before,
                                            count, &call.params);
    free(copy);
    return result != CUDA_SUCCESS ? result : set_attributes(graph, node);
}

static CUresult add_node(struct graph *graph, struct graph_node *node, const CUgraphNode *before,
                         size_t count)
{
    CUcontext context = graph->device->context;
    CUgraph in = graph_driver_of(graph, node);

    switch (node->kind) {
    case GRAPH_NODE_CONDITIONAL:
        return graph_add_conditional(graph, node, before, count);
    case GRAPH_NODE_KERNEL:
        return add_kernel(graph, node, before, count);
    case GRAPH_NODE_COPY: {
        const CUDA_MEMCPY3D copy = name_sides(graph, &node->copy);

        return driver.cuGraphAddMemcpyNode(&node->driver, in, before, count, &copy, context);
    }
    case GRAPH_NODE_MEMSET: {
        const CUDA_MEMSET_NODE_PARAMS params = fill_params(&node->memset);

        return driver.cuGraphAddMemsetNode(&node->driver, in, before, count, &params, context);
    }
    default:
        return driver.cuGraphAddEmptyNode(&node->driver, in, before, count);
    }
}

static bool is_programmatic(const struct graph *graph, const uint32_t edge[2])
{
    return graph_edge_port(edge) && driver.cuGraphAddDependencies_v2 &&
           graph->nodes[graph_edge_from(edge)].kind == GRAPH_NODE_KERNEL &&
           graph->nodes[edge[1]].kind == GRAPH_NODE_KERNEL;
}

/* The driver may refuse a programmatic edge at a kernel that cannot begin early: then the edge is
 * an ordinary one. */
static CUresult add_programmatic(const struct graph *graph, const uint32_t edge[2])
{
    const struct graph_node *from = &graph->nodes[graph_edge_from(edge)];
    const struct graph_node *to = &graph->nodes[edge[1]];
    const CUgraphEdgeData data = {.from_port = (unsigned char)graph_edge_port(edge),
                                  .type = (unsigned char)graph_edge_type(edge)};
    CUgraph in = graph_driver_of(graph, to);

    if (driver.cuGraphAddDependencies_v2(in, &from->driver, &to->driver, &data, 1) == CUDA_SUCCESS)
        return CUDA_SUCCESS;
    return driver.cuGraphAddDependencies_v2(in, &from->driver, &to->driver, NULL, 1);
}

static CUresult add_programmatic_edges(const struct graph *graph, uint32_t edge, uint32_t end)
{
    CUresult result = CUDA_SUCCESS;

    for (; edge < end && result == CUDA_SUCCESS; edge++)
        if (is_programmatic(graph, graph->edges[edge]))
            result = add_programmatic(graph, graph->edges[edge]);
    return result;
}

/* Edges are sorted by target node, so one walk finds the edges of each node. */
static CUresult add_nodes(struct graph *graph, CUgraphNode *before)
{
    CUresult result = CUDA_SUCCESS;
    uint32_t edge = 0;

    for (uint32_t i = 0; i < graph->node_count && result == CUDA_SUCCESS; i++) {
        uint32_t first = edge;
        size_t count = 0;

        for (; edge < graph->edge_count && graph->edges[edge][1] == i; edge++)
            if (!is_programmatic(graph, graph->edges[edge]))
                before[count++] = graph->nodes[graph_edge_from(graph->edges[edge])].driver;
        result = add_node(graph, &graph->nodes[i], count ? before : NULL, count);
        if (result == CUDA_SUCCESS && count < edge - first)
            result = add_programmatic_edges(graph, first, edge);
    }
    return result;
}

static bool driver_has_graphs(void)
{
    return driver.cuGraphCreate && driver.cuGraphDestroy && driver.cuGraphAddKernelNode_v2 &&
           driver.cuGraphAddMemcpyNode && driver.cuGraphAddMemsetNode &&
           driver.cuGraphAddEmptyNode && driver.cuGraphInstantiateWithFlags &&
           driver.cuGraphExecDestroy && driver.cuGraphLaunch &&
           driver.cuGraphExecKernelNodeSetParams_v2 && driver.cuGraphExecMemcpyNodeSetParams &&
           driver.cuGraphExecMemsetNodeSetParams;
}

static CUresult disable_nodes(const struct graph *graph)
{
    CUresult result = CUDA_SUCCESS;

    for (uint32_t i = 0; i < graph->node_count && result == CUDA_SUCCESS; i++)
        if (graph->nodes[i].disabled)
            result = driver.cuGraphNodeSetEnabled(graph->exec, graph->nodes[i].driver, 0);
    return result;
}

static unsigned slots_of(const struct graph *graph)
{
    return 1 + graph->node_count / NODES_IN_A_SLOT;
}

static CUresult instantiate_graph(struct graph *graph)
{
    struct session *session = graph->session;
    struct capacity_use use;
    CUresult result =
        capacity_begin(session, graph->device, slots_of(graph), "cuGraphInstantiate", &use);

    if (result != CUDA_SUCCESS)
        return result;
    result = driver.cuGraphInstantiateWithFlags(&graph->exec, graph->driver, graph->flags);
    capacity_end(session, graph->device, &use, result);
    graph->slots = result == CUDA_SUCCESS ? use.slots : 0;
    return result;
}

static CUresult build_graph(struct graph *graph, CUgraphNode *before)
{
    CUresult result = graph_prepare_ending(graph);

    if (result == CUDA_SUCCESS)
        result = driver.cuGraphCreate(&graph->driver, 0);
    if (result == CUDA_SUCCESS)
        result = graph_make_conditions(graph);
    if (result == CUDA_SUCCESS)
        result = add_nodes(graph, before);
    if (result == CUDA_SUCCESS)
        result = instantiate_graph(graph);
    if (result == CUDA_SUCCESS)
        result = disable_nodes(graph);
    return result;
}

static CUresult rebuild(struct graph *graph)
{
    /* No node has more predecessors than there are edges. */
    CUgraphNode *before = calloc(graph->edge_count + 1, sizeof(*before));

    if (!before)
        return CUDA_ERROR_OUT_OF_MEMORY;
    graph->session_priority = graph->session->limits.priority;
    graph->exchanges = memory_exchanges(graph->session);
    CUresult result = build_graph(graph, before);
    free(before);
    if (result != CUDA_SUCCESS)
        graph_unbuild(graph);
    return result;
}

/* The driver's graph may cache properties of an address. */
static bool is_up_to_date(const struct graph *graph)
{
    return graph->exec && graph->session_priority == graph->session->limits.priority &&
           graph->exchanges == memory_exchanges(graph->session);
}

CUresult graph_prepare(struct graph *graph)
{
    if (is_up_to_date(graph))
        return CUDA_SUCCESS;
    graph_unbuild(graph);
    return driver_has_graphs() ? rebuild(graph) : CUDA_ERROR_NOT_SUPPORTED;
}

/* ---- changing ---- */

static CUresult update_kernel(const struct graph *graph, const struct graph_node *node)
{
    struct launch launch = node->kernel->launch;
    struct kernel_call call;
    void *copy;
    CUresult result = graph_translate_params(graph, &launch, &copy);

    if (result != CUDA_SUCCESS)
        return result;
    kernel_call_init(&call, &launch);
    result = driver.cuGraphExecKernelNodeSetParams_v2(graph->exec, node->driver, &call.params);
    free(copy);
    return result;
}

CUresult graph_update_node(const struct graph *graph, const struct graph_node *node)
{
    CUcontext context = graph->device->context;

    switch (node->kind) {
    case GRAPH_NODE_KERNEL:
        return update_kernel(graph, node);
    case GRAPH_NODE_COPY: {
        const CUDA_MEMCPY3D copy = name_sides(graph, &node->copy);

        return driver.cuGraphExecMemcpyNodeSetParams(graph->exec, node->driver, &copy, context);
    }
    case GRAPH_NODE_MEMSET: {
        const CUDA_MEMSET_NODE_PARAMS params = fill_params(&node->memset);

        return driver.cuGraphExecMemsetNodeSetParams(graph->exec, node->driver, &params, context);
    }
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}
