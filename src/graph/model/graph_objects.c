/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs and nodes as objects. A node is in its graph's list and in the edges of its neighbors;
 * each edge is stored twice, once at either end. Work may contain a graph, so this file copies and
 * frees both.
 */
#include <stdlib.h>
#include <string.h>

#include "graph_condition.h"
#include "graph_handles.h"
#include "graph_kernel.h"
#include "graph_mem_ops.h"
#include "graph_memory.h"
#include "graph_objects.h"

#include "user_object.h"

static unsigned count_bodies(const struct graph_node *node)
{
    return node->work.type == CU_GRAPH_NODE_TYPE_CONDITIONAL ? node->work.conditional.size : 0;
}

struct graph *graph_new(bool named)
{
    struct graph *graph = calloc(1, sizeof(*graph));

    if (!graph)
        return NULL;
    list_init(&graph->nodes);
    if (named && !(graph->handle = graph_handle_add(GRAPH_HANDLE_GRAPH, graph))) {
        free(graph);
        return NULL;
    }
    return graph;
}

void graph_free(struct graph *graph)
{
    if (!graph)
        return;
    graph_handle_remove(GRAPH_HANDLE_GRAPH, graph->handle);
    list_for_each_safe (struct graph_node, node, &graph->nodes, in_graph) {
        node->dependencies.count = node->dependents.count = 0; /* all of them go */
        graph_remove(node);
    }
    graph_keeps_drop(&graph->keeps);
    graph_conditions_drop(graph);
    free(graph);
}

CUresult graph_add(struct graph *graph, bool named, struct graph_work *work,
                   struct graph_node **ret_node)
{
    struct graph_node *node = calloc(1, sizeof(*node));

    if (!node)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (named && !(node->handle = graph_handle_add(GRAPH_HANDLE_NODE, node))) {
        free(node);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    node->graph = graph;
    node->work = *work;
    if (work->type == CU_GRAPH_NODE_TYPE_GRAPH)
        work->child->in = node;
    for (unsigned i = 0; i < count_bodies(node); i++)
        work->conditional.bodies[i]->in = node;
    if (named &&
        (work->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || work->type == CU_GRAPH_NODE_TYPE_MEM_FREE))
        graph_memory_settle(work->memory, work->type, graph->handle);
    list_append(&graph->nodes, &node->in_graph);
    graph->count++;
    *ret_node = node;
    return CUDA_SUCCESS;
}

static void edges_remove(struct graph_edges *edges, const struct graph_node *node)
{
    unsigned i = 0;

    while (i < edges->count && edges->edges[i].node != node)
        i++;
    if (i == edges->count)
        return;
    edges->count--;
    memmove(&edges->edges[i], &edges->edges[i + 1], (edges->count - i) * sizeof(*edges->edges));
}

static bool edges_reserve(struct graph_edges *edges)
{
    unsigned capacity = edges->capacity ? edges->capacity * 2 : 2;

    if (edges->count < edges->capacity)
        return true;
    struct graph_edge *grown = realloc(edges->edges, capacity * sizeof(*grown));
    if (!grown)
        return false;
    edges->edges = grown;
    edges->capacity = capacity;
    return true;
}

static void edges_append(struct graph_edges *edges, struct graph_node *node,
                         const CUgraphEdgeData *data)
{
    struct graph_edge edge = {.node = node};

    if (data)
        edge.data = *data;
    edges->edges[edges->count++] = edge;
}

const struct graph_edge *graph_edge_find(const struct graph_node *from, const struct graph_node *to)
{
    for (unsigned i = 0; i < to->dependencies.count; i++) {
        if (to->dependencies.edges[i].node == from)
            return &to->dependencies.edges[i];
    }
    return NULL;
}

CUresult graph_connect(struct graph_node *from, struct graph_node *to, const CUgraphEdgeData *data)
{
    if (from == to || graph_edge_find(from, to))
        return CUDA_ERROR_INVALID_VALUE;
    if (!edges_reserve(&from->dependents) || !edges_reserve(&to->dependencies))
        return CUDA_ERROR_OUT_OF_MEMORY;
    edges_append(&from->dependents, to, data);
    edges_append(&to->dependencies, from, data);
    return CUDA_SUCCESS;
}

void graph_disconnect(struct graph_node *from, struct graph_node *to)
{
    edges_remove(&from->dependents, to);
    edges_remove(&to->dependencies, from);
}

void graph_remove(struct graph_node *node)
{
    for (unsigned i = 0; i < node->dependencies.count; i++)
        edges_remove(&node->dependencies.edges[i].node->dependents, node);
    for (unsigned i = 0; i < node->dependents.count; i++)
        edges_remove(&node->dependents.edges[i].node->dependencies, node);
    graph_handle_remove(GRAPH_HANDLE_NODE, node->handle);
    list_remove(&node->in_graph);
    node->graph->count--;
    free(node->dependencies.edges);
    free(node->dependents.edges);
    graph_work_fini(&node->work);
    free(node);
}

static bool is_of_memory(const struct graph_work *work)
{
    return work->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || work->type == CU_GRAPH_NODE_TYPE_MEM_FREE;
}

CUresult graph_work_copy(const struct graph_work *work, bool named, struct graph_work *ret_copy)
{
    struct graph_work copy = *work;
    CUresult result = CUDA_SUCCESS;

    if (work->type == CU_GRAPH_NODE_TYPE_KERNEL)
        result = graph_kernel_copy(&work->kernel, &copy.kernel);
    else if (work->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
        result = graph_mem_ops_copy(work->mem_ops.count, work->mem_ops.ops, &copy.mem_ops);
    else if (work->type == CU_GRAPH_NODE_TYPE_GRAPH)
        result = graph_copy(work->child, named, &copy.child);
    else if (work->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        result = graph_conditional_copy(&work->conditional, named, &copy.conditional);
    else if (is_of_memory(work))
        graph_memory_add_node(work->memory, work->type);
    if (!result)
        *ret_copy = copy;
    return result;
}

void graph_work_fini(struct graph_work *work)
{
    if (work->type == CU_GRAPH_NODE_TYPE_KERNEL)
        graph_kernel_fini(&work->kernel);
    else if (work->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
        free(work->mem_ops.ops);
    else if (work->type == CU_GRAPH_NODE_TYPE_GRAPH)
        graph_free(work->child);
    else if (work->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        graph_conditional_fini(&work->conditional);
    else if (is_of_memory(work))
        graph_memory_remove_node(work->memory, work->type);
}

static CUresult copy_node(struct graph_node *node, struct graph *to, bool named,
                          struct graph_node **ret_copy)
{
    struct graph_work work;
    CUresult result = graph_work_copy(&node->work, named, &work);

    if (result)
        return result;
    result = graph_add(to, named, &work, ret_copy);
    if (result) {
        graph_work_fini(&work);
        return result;
    }
    (*ret_copy)->original = node->handle;
    (*ret_copy)->disabled = node->disabled;
    return CUDA_SUCCESS;
}

/* The copies find each other by the numbers of their originals. */
static CUresult copy_edges(const struct graph *graph, struct graph_node **copies)
{
    CUresult result = CUDA_SUCCESS;

    list_for_each (struct graph_node, node, &graph->nodes, in_graph) {
        for (unsigned i = 0; !result && i < node->dependencies.count; i++) {
            const struct graph_edge *edge = &node->dependencies.edges[i];

            result = graph_connect(copies[edge->node->number], copies[node->number], &edge->data);
        }
    }
    return result;
}

CUresult graph_copy(const struct graph *graph, bool named, struct graph **ret_graph)
{
    _cleanup_free_ struct graph_node **copies = calloc(graph->count + 1, sizeof(*copies));
    struct graph *copy = copies ? graph_new(named) : NULL;
    CUresult result = copy ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    unsigned number = 0;

    if (result)
        return result;
    list_for_each (struct graph_node, node, &graph->nodes, in_graph) {
        node->number = number++;
        if (!result)
            result = copy_node(node, copy, named, &copies[node->number]);
    }
    if (!result)
        result = copy_edges(graph, copies);
    if (!result)
        result = graph_keeps_copy(&graph->keeps, &copy->keeps);
    if (result)
        graph_free(copy);
    else
        *ret_graph = copy;
    return result;
}

unsigned graph_order(const struct graph *graph, struct graph_node **ret_order)
{
    unsigned count = 0;

    list_for_each (struct graph_node, node, &graph->nodes, in_graph) {
        node->number = node->dependencies.count;
        if (node->number == 0)
            ret_order[count++] = node;
    }
    for (unsigned done = 0; done < count; done++) {
        const struct graph_edges *dependents = &ret_order[done]->dependents;

        for (unsigned i = 0; i < dependents->count; i++) {
            if (--dependents->edges[i].node->number == 0)
                ret_order[count++] = dependents->edges[i].node;
        }
    }
    return count;
}

unsigned graph_count_all(const struct graph *graph)
{
    unsigned count = graph->count;

    list_for_each (struct graph_node, node, &graph->nodes, in_graph) {
        if (node->work.type == CU_GRAPH_NODE_TYPE_GRAPH)
            count += graph_count_all(node->work.child);
        for (unsigned i = 0; i < count_bodies(node); i++)
            count += graph_count_all(node->work.conditional.bodies[i]);
    }
    return count;
}

/* Appends to `nodes`, which has the capacity. */
static CUresult list_from(const struct graph *graph, bool in_body, struct graph_node **nodes,
                          unsigned *count)
{
    _cleanup_free_ struct graph_node **order = calloc(graph->count + 1, sizeof(*order));
    CUresult result = CUDA_SUCCESS;

    if (!order)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (graph_order(graph, order) != graph->count)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; !result && i < graph->count; i++) {
        struct graph_node *node = order[i];

        node->in_body = in_body;
        node->index = (*count)++;
        nodes[node->index] = node;
        if (node->work.type == CU_GRAPH_NODE_TYPE_GRAPH)
            result = list_from(node->work.child, in_body, nodes, count);
        for (unsigned body = 0; !result && body < count_bodies(node); body++)
            result = list_from(node->work.conditional.bodies[body], true, nodes, count);
    }
    return result;
}

CUresult graph_list_all(const struct graph *graph, struct graph_node ***ret_nodes,
                        unsigned *ret_count)
{
    struct graph_node **nodes = calloc(graph_count_all(graph) + 1, sizeof(struct graph_node *));
    unsigned count = 0;

    if (!nodes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = list_from(graph, false, nodes, &count);
    if (result) {
        free(nodes);
        return result;
    }
    *ret_nodes = nodes;
    *ret_count = count;
    return CUDA_SUCCESS;
}
