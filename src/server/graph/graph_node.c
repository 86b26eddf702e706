/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptions of nodes. The instantiation reports an error in the description; for an instantiated
 * graph the command itself fails.
 */
#include <stdlib.h>
#include <string.h>

#include "batch_pause.h"
#include "copy.h"
#include "copy_chunks.h"
#include "function.h"
#include "graph_build.h"
#include "graph_conditional.h"
#include "graph_ending.h"
#include "graph_state.h"
#include "launch.h"
#include "memory.h"

static CUresult keep_error(struct graph *graph, CUresult result)
{
    if (graph->instantiated || result == CUDA_SUCCESS)
        return result;
    if (graph->refused == CUDA_SUCCESS)
        graph->refused = result;
    return CUDA_SUCCESS;
}

/* NULL, with an error in the log, when no node has this number. */
static struct graph_node *find_node(struct graph *graph, const char *call, uint32_t number)
{
    if (number < graph->node_count)
        return &graph->nodes[number];
    session_log_error(graph->session, "%s: node %u, there are %u", call, number, graph->node_count);
    return NULL;
}

static CUresult check_change(const struct graph *graph, const char *call,
                             const struct graph_node *node, enum graph_node_kind kind)
{
    bool may_change = graph->instantiated
                          ? graph->refused == CUDA_SUCCESS && node->kind == kind
                          : node->kind != GRAPH_NODE_CONDITIONAL; /* it contains other nodes */

    if (may_change)
        return CUDA_SUCCESS;
    session_log_error(graph->session, "%s: the node is of another kind, or its graph is broken",
                      call);
    return CUDA_ERROR_INVALID_VALUE;
}

static bool splits(const struct window *window, const struct graph_node *node)
{
    return (node->kind == GRAPH_NODE_COPY && copy_chunks_splits_box(window, &node->copy)) ||
           (node->kind == GRAPH_NODE_MEMSET && copy_chunks_splits_memset(window, &node->memset));
}

static bool node_addresses_hold(struct graph *graph, const struct graph_node *node)
{
    switch (node->kind) {
    case GRAPH_NODE_COPY:
        return copy_check(graph->session, "cuGraphLaunch", &node->copy);
    case GRAPH_NODE_MEMSET:
        return copy_check_memset(graph->session, "cuGraphLaunch", &node->memset);
    default:
        return true;
    }
}

bool graph_addresses_hold(struct graph *graph)
{
    uint64_t generation = memory_generation(graph->session);

    if (graph->checked == generation)
        return true;
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (!node_addresses_hold(graph, &graph->nodes[i]))
            return false;
    graph->checked = generation;
    return true;
}

/* Sets a node of the driver's graph, or discards that graph, so that the next launch rebuilds it:
 * see batch_pause.h. The driver refuses a copy of type CU_MEMORYTYPE_UNIFIED whose addresses have
 * become another kind of memory. */
static CUresult set_node(struct graph *graph, const struct graph_node *node,
                         CUresult (*in_place)(const struct graph *, const struct graph_node *))
{
    CUresult result = session_enter(graph->session, graph->device);

    if (result != CUDA_SUCCESS)
        return result;
    if (!batch_pause_is_on(graph->device)) {
        result = in_place(graph, node);
        if (result != CUDA_ERROR_INVALID_VALUE)
            return result;
    }
    graph_unbuild(graph);
    return CUDA_SUCCESS;
}

/* A graph with a split node is launched node by node, without the driver's graph. */
static CUresult change(struct graph *graph, struct graph_node *node, const struct graph_node *what)
{
    graph_node_become(graph, node, what);
    graph->is_split |= splits(graph->session->window, what);
    if (!graph->exec || graph->is_split)
        return CUDA_SUCCESS;
    return set_node(graph, node, graph_update_node);
}

/* ---- kernels ---- */

static void fill_kernel(struct graph_kernel *kernel, const struct wire_fnGraphKernelNode *in,
                        struct function *function, const CUlaunchAttribute *attributes,
                        unsigned count)
{
    size_t attributes_size = count * sizeof(*attributes);

    kernel->launch = (struct launch){
        .function = function,
        .params = kernel->bytes + attributes_size,
    };
    launch_shape_read(&kernel->launch.shape, in->shape, in->params_size);
    kernel->priority = in->priority;
    kernel->attribute_count = count;
    kernel->attributes = (CUlaunchAttribute *)(void *)kernel->bytes;
    memcpy(kernel->bytes, attributes, attributes_size);
    memcpy(kernel->bytes + attributes_size, in->params, in->params_size);
}

static CUresult make_kernel(struct graph *graph, const struct wire_fnGraphKernelNode *in,
                            struct function *function, struct graph_kernel **ret_kernel)
{
    CUlaunchAttribute attributes[LAUNCH_ATTRIBUTES_MAX];
    struct session *session = graph->session;
    unsigned count = 0;

    if (!launch_check_params(session, "cuGraphAddKernelNode", in->params_size, function))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result =
        launch_filter_attributes(session, "cuGraphAddKernelNode", function, in->attributes,
                                 in->attributes_size, attributes, &count);
    if (result != CUDA_SUCCESS)
        return result;
    size_t size = sizeof(struct graph_kernel) + count * sizeof(*attributes) + in->params_size;
    struct graph_kernel *kernel = graph_charge(graph, size) ? malloc(size) : NULL;
    if (!kernel)
        return CUDA_ERROR_OUT_OF_MEMORY;
    kernel->size = size;
    fill_kernel(kernel, in, function, attributes, count);
    *ret_kernel = kernel;
    return CUDA_SUCCESS;
}

static void note_width(struct graph *graph, const uint32_t grid[3])
{
    const uint32_t *widest = graph->widest;

    if ((uint64_t)grid[0] * grid[1] * grid[2] > (uint64_t)widest[0] * widest[1] * widest[2])
        memcpy(graph->widest, grid, sizeof(graph->widest));
}

static CUresult set_kernel(struct graph *graph, const struct wire_fnGraphKernelNode *in,
                           struct function *function)
{
    struct graph_node *node = find_node(graph, "cuGraphAddKernelNode", in->node);
    struct graph_node what = {.kind = GRAPH_NODE_KERNEL};

    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = check_change(graph, "cuGraphExecKernelNodeSetParams", node, what.kind);
    if (result == CUDA_SUCCESS)
        result = make_kernel(graph, in, function, &what.kernel);
    if (result != CUDA_SUCCESS)
        return result;
    graph->uses |= function->uses;
    if (function_may_print(function))
        print_format_set_add(&graph->formats, function_formats(function));
    note_width(graph, what.kernel->launch.shape.grid);
    result = change(graph, node, &what);
    graph->last = function;
    return result;
}

CUresult serve_fnGraphKernelNode(struct session *session, const struct wire_fnGraphKernelNode *in,
                                 struct graph *graph, struct function *f)
{
    (void)session;
    return keep_error(graph, set_kernel(graph, in, f));
}

/* ---- conditional nodes ---- */

CUresult serve_fnGraphConditionalNode(struct session *session,
                                      const struct wire_fnGraphConditionalNode *in,
                                      struct graph *graph)
{
    (void)session;
    return keep_error(graph, graph_describe_conditional(graph, in));
}

/* ---- copies and memsets ---- */

static CUresult set_copy(struct graph *graph, const struct wire_fnGraphCopyNode *in)
{
    const struct wire_cuMemcpy3DAsync_v2 copy = {
        .dst = in->dst,
        .src = in->src,
        .dst_pitch = in->dst_pitch,
        .dst_height = in->dst_height,
        .src_pitch = in->src_pitch,
        .src_height = in->src_height,
        .width = in->width,
        .height = in->height,
        .depth = in->depth,
    };
    const struct graph_node what = {.kind = GRAPH_NODE_COPY, .copy = copy_describe(&copy)};
    struct graph_node *node = find_node(graph, "cuGraphAddMemcpyNode", in->node);

    if (!node || !copy_check(graph->session, "cuGraphAddMemcpyNode", &what.copy))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = check_change(graph, "cuGraphExecMemcpyNodeSetParams", node, what.kind);
    return result != CUDA_SUCCESS ? result : change(graph, node, &what);
}

CUresult serve_fnGraphCopyNode(struct session *session, const struct wire_fnGraphCopyNode *in,
                               struct graph *graph)
{
    (void)session;
    return keep_error(graph, set_copy(graph, in));
}

static CUresult set_memset(struct graph *graph, const struct wire_fnGraphMemsetNode *in)
{
    const struct graph_node what = {
        .kind = GRAPH_NODE_MEMSET,
        .memset = {.dst = in->dst,
                   .pitch = in->pitch,
                   .value = in->value,
                   .element_size = in->element_size,
                   .width = in->width,
                   .height = in->height},
    };
    struct graph_node *node = find_node(graph, "cuGraphAddMemsetNode", in->node);

    if (!node || !copy_check_memset(graph->session, "cuGraphAddMemsetNode", &what.memset))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = check_change(graph, "cuGraphExecMemsetNodeSetParams", node, what.kind);
    return result != CUDA_SUCCESS ? result : change(graph, node, &what);
}

CUresult serve_fnGraphMemsetNode(struct session *session, const struct wire_fnGraphMemsetNode *in,
                                 struct graph *graph)
{
    (void)session;
    return keep_error(graph, set_memset(graph, in));
}

/* ---- edges ---- */

static CUresult reserve_edges(struct graph *graph, uint32_t count)
{
    uint32_t capacity = 2 * graph->edge_capacity + count;

    if (graph->edge_count + count <= graph->edge_capacity)
        return CUDA_SUCCESS;
    if (capacity > GRAPH_EDGES_MAX) {
        session_log_error(graph->session, "cuGraphInstantiate: more than %u edges",
                          GRAPH_EDGES_MAX);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!graph_charge(graph, (uint64_t)(capacity - graph->edge_capacity) * sizeof(*graph->edges)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    void *edges = realloc(graph->edges, capacity * sizeof(*graph->edges));
    if (!edges)
        return CUDA_ERROR_OUT_OF_MEMORY;
    graph->edges = edges;
    graph->edge_capacity = capacity;
    return CUDA_SUCCESS;
}

static bool are_in_one_graph(const struct graph_node *one, const struct graph_node *other)
{
    return one->container == other->container && one->body == other->body;
}

/* Edges lead to higher numbers only, so there are no cycles. */
static bool is_next_edge(const struct graph *graph, const uint32_t edge[2])
{
    uint32_t from = graph_edge_from(edge);

    if (from >= edge[1] || edge[1] >= graph->node_count ||
        graph_edge_port(edge) > CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER ||
        graph_edge_type(edge) > CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC ||
        !are_in_one_graph(&graph->nodes[from], &graph->nodes[edge[1]]))
        return false;
    return !graph->edge_count || graph->edges[graph->edge_count - 1][1] <= edge[1];
}

static CUresult add_edges(struct graph *graph, const unsigned char *bytes, uint32_t size)
{
    uint32_t edge[2], count = size / sizeof(edge);
    CUresult result = reserve_edges(graph, count);

    if (result != CUDA_SUCCESS)
        return result;
    for (uint32_t i = 0; i < count; i++) {
        memcpy(edge, bytes + i * sizeof(edge), sizeof(edge));
        if (!is_next_edge(graph, edge)) {
            session_log_error(graph->session, "cuGraphInstantiate: edge from node %u to node %u",
                              graph_edge_from(edge), edge[1]);
            return CUDA_ERROR_INVALID_VALUE;
        }
        memcpy(graph->edges[graph->edge_count++], edge, sizeof(edge));
    }
    return CUDA_SUCCESS;
}

CUresult serve_fnGraphEdges(struct session *session, const struct wire_fnGraphEdges *in,
                            struct graph *graph)
{
    if (graph->instantiated || in->edges_size % sizeof(*graph->edges)) {
        session_log_error(
            session, "cuGraphInstantiate: the edges are malformed, or come after instantiation");
        return CUDA_ERROR_INVALID_VALUE;
    }
    return keep_error(graph, add_edges(graph, in->edges, in->edges_size));
}

/* ---- enabling nodes ---- */

static CUresult enable(const struct graph *graph, const struct graph_node *node)
{
    return driver.cuGraphNodeSetEnabled(graph->exec, node->driver, !node->disabled);
}

CUresult serve_cuGraphNodeSetEnabled(struct session *session,
                                     const struct wire_cuGraphNodeSetEnabled *in,
                                     struct graph *graph)
{
    struct graph_node *node = find_node(graph, "cuGraphNodeSetEnabled", in->node);

    if (!node || !graph->instantiated || node->kind == GRAPH_NODE_EMPTY ||
        node->kind == GRAPH_NODE_CONDITIONAL)
        return CUDA_ERROR_INVALID_VALUE;
    node->disabled = !in->enabled;
    if (!graph->exec || graph->is_split)
        return CUDA_SUCCESS;
    if (!driver.cuGraphNodeSetEnabled)
        return CUDA_ERROR_NOT_SUPPORTED;
    return set_node(graph, node, enable);
}
