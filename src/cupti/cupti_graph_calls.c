/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See cupti_graph_calls.h. The callbacks come in the order in which NVIDIA's library makes them. A
 * launchable graph has copies of its nodes, which have no handles. Their ids (cupti_graph.h) stand
 * for these, and its own handle for the graph that the copies are in. Work of a child graph is work
 * of that graph as well, so the copies of a child's nodes are told of there.
 */
#include "cupti_graph_calls.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cupti_abi.h"
#include "cupti_call.h"
#include "cupti_callback.h"
#include "cupti_driver.h"
#include "cupti_graph.h"

static void tell(uint32_t cbid, struct cupti_graph_data *graph)
{
    cupti_callback_resource(cbid, &(struct cupti_resource_data){.descriptor = graph});
}

/* ---- what a graph has ---- */

struct nodes {
    CUgraphNode *list; /* the caller frees it */
    size_t count;
};

static struct nodes nodes_of(CUgraph graph)
{
    struct nodes nodes = {0};

    if (cupti_driver()->graph_nodes(graph, NULL, &nodes.count) != CUDA_SUCCESS || !nodes.count)
        return (struct nodes){0};
    nodes.list = calloc(nodes.count, sizeof(*nodes.list));
    if (!nodes.list || cupti_driver()->graph_nodes(graph, nodes.list, &nodes.count) != CUDA_SUCCESS)
        nodes.count = 0;
    return nodes;
}

static CUgraphNodeType type_of(CUgraphNode node)
{
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;

    cupti_driver()->node_type(node, &type);
    return type;
}

/* NULL for all other nodes. */
static CUgraph child_of(CUgraphNode node)
{
    CUgraph child;

    return type_of(node) == CU_GRAPH_NODE_TYPE_GRAPH &&
                   cupti_driver()->child_graph(node, &child) == CUDA_SUCCESS
               ? child
               : NULL;
}

/* ---- what is made ---- */

static void graph_was_made(CUgraph graph)
{
    struct cupti_graph_data data = {.graph = graph};

    tell(CUPTI_GRAPH_CREATED, &data);
}

static void node_was_made(CUgraph graph, CUgraphNode node, CUgraphNodeType type)
{
    struct cupti_graph_data data = {.graph = graph, .node = node, .type = type};

    tell(CUPTI_GRAPHNODE_CREATE_STARTING, &data);
    tell(CUPTI_GRAPHNODE_CREATED, &data);
}

static void node_was_copied(const struct cupti_graph_data *copy)
{
    struct cupti_graph_data data = *copy;

    node_was_made(data.graph, data.node, data.type);
    tell(CUPTI_GRAPHNODE_CLONED, &data);
}

static void graph_was_copied(CUgraph graph, CUgraph original);

/* A copy has its nodes in the order of the original's. */
static void nodes_were_copied(CUgraph graph, CUgraph original)
{
    struct nodes copies = nodes_of(graph), originals = nodes_of(original);

    for (size_t i = 0; i < copies.count && i < originals.count; i++) {
        struct cupti_graph_data data = {
            .graph = graph,
            .original_graph = original,
            .node = copies.list[i],
            .original_node = originals.list[i],
            .type = type_of(copies.list[i]),
        };
        if (child_of(data.node))
            graph_was_copied(child_of(data.node), child_of(data.original_node));
        node_was_copied(&data);
    }
    free(copies.list);
    free(originals.list);
}

static void graph_was_copied(CUgraph graph, CUgraph original)
{
    graph_was_made(graph);
    nodes_were_copied(graph, original);
}

/* ---- nodes ---- */

static bool is_call(const struct profiler_call *call, const char *name)
{
    return !strcmp(call->name, name);
}

/* The graph whose copy the call has made the child of a node, or NULL. The arguments are words. */
static CUgraph child_that_was_copied(const struct profiler_call *call)
{
    const void *const *arguments = call->arguments;
    const CUgraphNodeParams *any;

    if (is_call(call, "cuGraphAddChildGraphNode"))
        return (CUgraph)arguments[4];
    if (!cupti_call_begins(call, "cuGraphAddNode"))
        return NULL;
    any = arguments[is_call(call, "cuGraphAddNode") ? 4 : 5];
    return any->type == CU_GRAPH_NODE_TYPE_GRAPH &&
                   any->graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE
               ? any->graph.graph
               : NULL;
}

/* The first arguments of cuGraphAddKernelNode() and its like. */
static void node_was_added(const struct profiler_call *call)
{
    const struct {
        CUgraphNode *node;
        CUgraph graph;
    } *arguments = call->arguments;
    CUgraph child = child_that_was_copied(call);

    if (child)
        graph_was_copied(child_of(*arguments->node), child);
    node_was_made(arguments->graph, *arguments->node, type_of(*arguments->node));
}

/* What a stream captures last is what the next command depends on. */
static void work_was_captured(const struct profiler_call *call)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUgraphNode *nodes;
    CUstream stream = cupti_call_stream(call);
    CUgraph graph;
    size_t count;

    if (stream &&
        cupti_driver()->capture_info(stream, &status, NULL, &graph, &nodes, &count) ==
            CUDA_SUCCESS &&
        status == CU_STREAM_CAPTURE_STATUS_ACTIVE && count == 1)
        node_was_made(graph, nodes[0], type_of(nodes[0]));
}

static bool may_be_captured(const struct profiler_call *call)
{
    return cupti_call_begins(call, "cuLaunch") || cupti_call_begins(call, "cuMemcpy") ||
           cupti_call_begins(call, "cuMemset") || cupti_call_begins(call, "cuMemAllocAsync") ||
           cupti_call_begins(call, "cuMemFreeAsync");
}

/* ---- graphs ---- */

static void capture_began(const struct profiler_call *call)
{
    CUstreamCaptureStatus status;
    CUgraph graph = NULL;

    if (cupti_driver()->capture_info(cupti_call_stream(call), &status, NULL, &graph, NULL, NULL) ==
            CUDA_SUCCESS &&
        graph)
        graph_was_made(graph);
}

/* The first arguments of cuGraphClone(). */
static void graph_was_cloned(const struct profiler_call *call)
{
    const struct {
        CUgraph *clone;
        CUgraph original;
    } *arguments = call->arguments;
    struct cupti_graph_data data = {
        .graph = *arguments->clone,
        .original_graph = arguments->original,
    };

    graph_was_copied(data.graph, data.original_graph);
    tell(CUPTI_GRAPH_CLONED, &data);
}

/* ---- launchable graphs ---- */

static void tell_of_copies(CUgraph original, CUgraphExec exec)
{
    unsigned count = cupti_driver()->profiler->exec_nodes(exec, 0, NULL);
    struct profiler_node *nodes = calloc(count + 1, sizeof(*nodes));

    if (nodes)
        cupti_driver()->profiler->exec_nodes(exec, count, nodes);
    for (unsigned i = 0; nodes && i < count; i++)
        node_was_copied(&(struct cupti_graph_data){
            .graph = (CUgraph)exec,
            .original_graph = original,
            .node = (CUgraphNode)(uintptr_t)cupti_graph_node(exec, i),
            .original_node = nodes[i].original,
            .type = nodes[i].type,
        });
    free(nodes);
}

/* The first arguments of cuGraphInstantiate() in all of its forms. */
static void exec_was_made(const struct profiler_call *call)
{
    const struct {
        CUgraphExec *exec;
        CUgraph graph;
    } *arguments = call->arguments;
    struct cupti_graph_data data = {.graph = arguments->graph, .exec = *arguments->exec};

    graph_was_made((CUgraph)data.exec);
    tell_of_copies(data.graph, data.exec);
    tell(CUPTI_GRAPHEXEC_CREATE_STARTING, &data);
    tell(CUPTI_GRAPHEXEC_CREATED, &data);
}

static void tell_of_end(uint32_t cbid, CUgraph graph, CUgraphNode node)
{
    struct cupti_graph_data data = {.graph = graph, .node = node};

    tell(cbid, &data);
}

static void exec_ends(CUgraphExec exec)
{
    struct cupti_graph_data data = {.exec = exec};
    unsigned count = cupti_driver()->profiler->exec_nodes(exec, 0, NULL);

    tell(CUPTI_GRAPHEXEC_DESTROY_STARTING, &data);
    tell_of_end(CUPTI_GRAPH_DESTROY_STARTING, (CUgraph)exec, NULL);
    for (unsigned i = 0; i < count; i++)
        tell_of_end(CUPTI_GRAPHNODE_DESTROY_STARTING, (CUgraph)exec,
                    (CUgraphNode)(uintptr_t)cupti_graph_node(exec, i));
}

/* ---- what ends ---- */

static void graph_ends(CUgraph graph);

static void node_ends(CUgraph graph, CUgraphNode node)
{
    CUgraph child = child_of(node);

    tell_of_end(CUPTI_GRAPHNODE_DESTROY_STARTING, graph, node);
    if (child)
        graph_ends(child);
}

static void graph_ends(CUgraph graph)
{
    struct nodes nodes = nodes_of(graph);

    tell_of_end(CUPTI_GRAPH_DESTROY_STARTING, graph, NULL);
    for (size_t i = 0; i < nodes.count; i++)
        node_ends(graph, nodes.list[i]);
    free(nodes.list);
}

/* ---- calls ---- */

void cupti_graph_call_enter(const struct profiler_call *call)
{
    const void *const *handle = call->arguments;

    if (is_call(call, "cuGraphExecDestroy"))
        exec_ends((CUgraphExec)*handle);
    else if (is_call(call, "cuGraphDestroy"))
        graph_ends((CUgraph)*handle);
    else if (is_call(call, "cuGraphDestroyNode"))
        node_ends(NULL, (CUgraphNode)*handle);
}

void cupti_graph_call_leave(const struct profiler_call *call)
{
    if (cupti_call_begins(call, "cuGraphInstantiate"))
        exec_was_made(call);
    else if (is_call(call, "cuGraphClone"))
        graph_was_cloned(call);
    else if (is_call(call, "cuGraphCreate"))
        graph_was_made(**(CUgraph *const *)call->arguments);
    else if (cupti_call_begins(call, "cuGraphAdd") && strstr(call->name, "Node"))
        node_was_added(call);
    else if (cupti_call_begins(call, "cuStreamBeginCapture"))
        capture_began(call);
    else if (may_be_captured(call))
        work_was_captured(call);
}
