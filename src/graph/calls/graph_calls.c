/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls about whole graphs and their edges.
 */
#include <string.h>

#include "graph_condition.h"
#include "graph_memory.h"
#include "graph_objects.h"

CUresult graph_cuGraphCreate(CUgraph *phGraph, unsigned int flags)
{
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    GRAPH_LOCKED;
    const struct graph *graph = graph_new(true);

    if (!graph)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *phGraph = (CUgraph)(uintptr_t)graph->handle;
    return CUDA_SUCCESS;
}

CUresult graph_cuGraphDestroy(CUgraph hGraph)
{
    GRAPH_LOCKED;
    struct graph *graph = graph_get(hGraph);

    if (!graph || graph->in || graph->is_captured_into)
        return CUDA_ERROR_INVALID_VALUE;
    graph_free(graph);
    return CUDA_SUCCESS;
}

CUresult graph_cuGraphClone(CUgraph *phGraphClone, CUgraph originalGraph)
{
    GRAPH_LOCKED;
    const struct graph *graph = graph_get(originalGraph);
    struct graph *clone;

    if (!graph)
        return CUDA_ERROR_INVALID_VALUE;
    if (graph_has_memory(graph) || graph_has_conditional(graph))
        return CUDA_ERROR_NOT_SUPPORTED;
    CUresult result = graph_copy(graph, true, &clone);
    if (!result)
        *phGraphClone = (CUgraph)(uintptr_t)clone->handle;
    return result;
}

/* In child graphs, too. */
static const struct graph_node *find_clone(const struct graph *graph, uint64_t original)
{
    list_for_each (struct graph_node, node, &graph->nodes, in_graph) {
        const struct graph_node *found = NULL;

        if (node->original == original)
            return node;
        if (node->work.type == CU_GRAPH_NODE_TYPE_GRAPH)
            found = find_clone(node->work.child, original);
        if (found)
            return found;
    }
    return NULL;
}

CUresult graph_cuGraphNodeFindInClone(CUgraphNode *phNode, CUgraphNode hOriginalNode,
                                      CUgraph hClonedGraph)
{
    GRAPH_LOCKED;
    const struct graph_node *original = graph_node_get(hOriginalNode);
    const struct graph *graph = graph_get(hClonedGraph);
    const struct graph_node *found = original && graph ? find_clone(graph, original->handle) : NULL;

    if (!found)
        return CUDA_ERROR_INVALID_VALUE;
    *phNode = graph_node_handle(found);
    return CUDA_SUCCESS;
}

/* The caller's arrays, their capacity, and the number of results. */
struct answer {
    CUgraphNode *first, *second;
    CUgraphEdgeData *data;
    size_t capacity, count;
    bool is_lossy; /* an edge had data, and the caller has no array for it */
};

static void answer_add(struct answer *answer, const struct graph_node *first,
                       const struct graph_node *second, const CUgraphEdgeData *data)
{
    static const CUgraphEdgeData none;
    size_t i = answer->count++;

    if (data && !answer->data && memcmp(data, &none, sizeof(none)) != 0)
        answer->is_lossy = true;
    if (i >= answer->capacity)
        return;
    if (answer->first)
        answer->first[i] = graph_node_handle(first);
    if (answer->second)
        answer->second[i] = graph_node_handle(second);
    if (answer->data && data)
        answer->data[i] = *data;
}

/* Without an array the caller wants only the number. Unused elements become NULL. */
static CUresult answer_end(struct answer *answer, size_t *ret_count)
{
    if (!answer->first && !answer->second) {
        *ret_count = answer->count;
        return CUDA_SUCCESS;
    }
    if (answer->is_lossy)
        return CUDA_ERROR_LOSSY_QUERY;
    for (size_t i = answer->count; i < answer->capacity; i++) {
        if (answer->first)
            answer->first[i] = NULL;
        if (answer->second)
            answer->second[i] = NULL;
    }
    if (answer->count < *ret_count)
        *ret_count = answer->count;
    return CUDA_SUCCESS;
}

CUresult graph_cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes)
{
    GRAPH_LOCKED;
    const struct graph *graph = graph_get(hGraph);

    if (!graph)
        return CUDA_ERROR_INVALID_VALUE;
    struct answer answer = {.first = nodes, .capacity = *numNodes};
    list_for_each (struct graph_node, node, &graph->nodes, in_graph)
        answer_add(&answer, node, NULL, NULL);
    return answer_end(&answer, numNodes);
}

CUresult graph_cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode *rootNodes, size_t *numRootNodes)
{
    GRAPH_LOCKED;
    const struct graph *graph = graph_get(hGraph);

    if (!graph)
        return CUDA_ERROR_INVALID_VALUE;
    struct answer answer = {.first = rootNodes, .capacity = *numRootNodes};
    list_for_each (struct graph_node, node, &graph->nodes, in_graph) {
        if (node->dependencies.count == 0)
            answer_add(&answer, node, NULL, NULL);
    }
    return answer_end(&answer, numRootNodes);
}

CUresult graph_cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to,
                                  CUgraphEdgeData *edgeData, size_t *numEdges)
{
    GRAPH_LOCKED;
    const struct graph *graph = graph_get(hGraph);

    if (!graph || !from != !to || (edgeData && !from))
        return CUDA_ERROR_INVALID_VALUE;
    struct answer answer = {.first = from, .second = to, .data = edgeData, .capacity = *numEdges};
    list_for_each (struct graph_node, node, &graph->nodes, in_graph) {
        for (unsigned i = 0; i < node->dependents.count; i++) {
            const struct graph_edge *edge = &node->dependents.edges[i];

            answer_add(&answer, node, edge->node, &edge->data);
        }
    }
    return answer_end(&answer, numEdges);
}

CUresult graph_cuGraphGetEdges(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, size_t *numEdges)
{
    return graph_cuGraphGetEdges_v2(hGraph, from, to, NULL, numEdges);
}

static CUresult tell_edges(const struct graph_edges *edges, CUgraphNode *nodes,
                           CUgraphEdgeData *data, size_t *ret_count)
{
    if (!ret_count || (data && !nodes))
        return CUDA_ERROR_INVALID_VALUE;
    struct answer answer = {.first = nodes, .data = data, .capacity = *ret_count};
    for (unsigned i = 0; i < edges->count; i++)
        answer_add(&answer, edges->edges[i].node, NULL, &edges->edges[i].data);
    return answer_end(&answer, ret_count);
}

CUresult graph_cuGraphNodeGetDependencies_v2(CUgraphNode hNode, CUgraphNode *dependencies,
                                             CUgraphEdgeData *edgeData, size_t *numDependencies)
{
    GRAPH_LOCKED;
    const struct graph_node *node = graph_node_get(hNode);

    return node ? tell_edges(&node->dependencies, dependencies, edgeData, numDependencies)
                : CUDA_ERROR_INVALID_VALUE;
}

CUresult graph_cuGraphNodeGetDependencies(CUgraphNode hNode, CUgraphNode *dependencies,
                                          size_t *numDependencies)
{
    return graph_cuGraphNodeGetDependencies_v2(hNode, dependencies, NULL, numDependencies);
}

CUresult graph_cuGraphNodeGetDependentNodes_v2(CUgraphNode hNode, CUgraphNode *dependentNodes,
                                               CUgraphEdgeData *edgeData, size_t *numDependentNodes)
{
    GRAPH_LOCKED;
    const struct graph_node *node = graph_node_get(hNode);

    return node ? tell_edges(&node->dependents, dependentNodes, edgeData, numDependentNodes)
                : CUDA_ERROR_INVALID_VALUE;
}

CUresult graph_cuGraphNodeGetDependentNodes(CUgraphNode hNode, CUgraphNode *dependentNodes,
                                            size_t *numDependentNodes)
{
    return graph_cuGraphNodeGetDependentNodes_v2(hNode, dependentNodes, NULL, numDependentNodes);
}

/* Finds one pair of a call about several edges. */
static bool find_pair(const struct graph *graph, CUgraphNode from, CUgraphNode to,
                      struct graph_node **ret_from, struct graph_node **ret_to)
{
    *ret_from = graph_node_get(from);
    *ret_to = graph_node_get(to);
    return *ret_from && *ret_to && (*ret_from)->graph == graph && (*ret_to)->graph == graph;
}

static void disconnect_first(const struct graph *graph, const CUgraphNode *from,
                             const CUgraphNode *to, size_t count)
{
    struct graph_node *one, *other;

    for (size_t i = 0; i < count; i++) {
        if (find_pair(graph, from[i], to[i], &one, &other))
            graph_disconnect(one, other);
    }
}

/* Whether an edge may have this data. Only edges that lead from a kernel have ports. */
static bool is_possible(const struct graph_node *from, const CUgraphEdgeData *data)
{
    bool programmatic = data && data->type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;

    if (!data || (!data->from_port && !data->type && !data->to_port))
        return true;
    if (from->work.type != CU_GRAPH_NODE_TYPE_KERNEL || data->to_port ||
        data->type > CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC)
        return false;
    return data->from_port == CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER ||
           (data->from_port == CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC && programmatic);
}

CUresult graph_cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode *from,
                                         const CUgraphNode *to, const CUgraphEdgeData *edgeData,
                                         size_t numDependencies)
{
    GRAPH_LOCKED;
    const struct graph *graph = graph_get(hGraph);
    CUresult result = CUDA_SUCCESS;

    if (!graph || (numDependencies && (!from || !to)))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < numDependencies; i++) {
        struct graph_node *one, *other;

        result = CUDA_ERROR_INVALID_VALUE;
        if (find_pair(graph, from[i], to[i], &one, &other) &&
            is_possible(one, edgeData ? &edgeData[i] : NULL))
            result = graph_connect(one, other, edgeData ? &edgeData[i] : NULL);
        if (result) {
            disconnect_first(graph, from, to, i);
            break;
        }
    }
    return result;
}

CUresult graph_cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode *from,
                                      const CUgraphNode *to, size_t numDependencies)
{
    return graph_cuGraphAddDependencies_v2(hGraph, from, to, NULL, numDependencies);
}

CUresult graph_cuGraphRemoveDependencies_v2(CUgraph hGraph, const CUgraphNode *from,
                                            const CUgraphNode *to, const CUgraphEdgeData *edgeData,
                                            size_t numDependencies)
{
    GRAPH_LOCKED;
    const struct graph *graph = graph_get(hGraph);

    if (!graph || (numDependencies && (!from || !to)))
        return CUDA_ERROR_INVALID_VALUE;
    if (graph_has_memory(graph))
        return CUDA_ERROR_NOT_SUPPORTED;
    for (size_t i = 0; i < numDependencies; i++) {
        struct graph_node *one, *other;

        if (!find_pair(graph, from[i], to[i], &one, &other))
            return CUDA_ERROR_INVALID_VALUE;
        const struct graph_edge *edge = graph_edge_find(one, other);
        if (!edge || (edgeData && memcmp(&edge->data, &edgeData[i], sizeof(edge->data)) != 0))
            return CUDA_ERROR_INVALID_VALUE;
    }
    disconnect_first(graph, from, to, numDependencies);
    return CUDA_SUCCESS;
}

CUresult graph_cuGraphRemoveDependencies(CUgraph hGraph, const CUgraphNode *from,
                                         const CUgraphNode *to, size_t numDependencies)
{
    return graph_cuGraphRemoveDependencies_v2(hGraph, from, to, NULL, numDependencies);
}
