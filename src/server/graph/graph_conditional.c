/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditional nodes. A handle of the driver is valid for one graph of the driver, and the server
 * rebuilds that graph at times. So the client has a number for each value. When the graph is built,
 * the driver's handle replaces that number in kernel parameters.
 */
#include "graph_conditional.h"

#include <stdlib.h>
#include <string.h>

#include "kernel_call.h"

/* The depth of nested conditional nodes: the software GPU recurses. */
#define DEPTH_MAX 32u

/* ---- descriptions ---- */

static uint32_t depth_of(const struct graph *graph, const struct graph_node *node)
{
    uint32_t depth = 0;

    for (; node->container; node = &graph->nodes[node->container - 1])
        depth++;
    return depth;
}

static bool counts_fit(const struct graph *graph, const struct graph_node *node,
                       const uint32_t *counts, uint32_t size)
{
    uint64_t next = (uint64_t)(node - graph->nodes) + 1;

    for (uint32_t body = 0; body < size; body++) {
        for (uint32_t i = 0; i < counts[body]; i++, next++) {
            if (next >= graph->node_count || graph->nodes[next].container != node->container ||
                graph->nodes[next].body != node->body)
                return false;
        }
    }
    return true;
}

static void take_in(struct graph *graph, uint32_t number, const uint32_t *counts, uint32_t size)
{
    uint32_t next = number + 1;

    for (uint32_t body = 0; body < size; body++) {
        for (uint32_t i = 0; i < counts[body]; i++, next++) {
            graph->nodes[next].container = number + 1;
            graph->nodes[next].body = body;
        }
    }
}

/* Several nodes may read one value, which has one default. */
static CUresult know_condition(struct graph *graph, const struct wire_fnGraphConditionalNode *in,
                               struct graph_condition **ret_condition)
{
    struct graph_condition *condition = map_get(&graph->conditions, in->condition);

    if (!condition) {
        condition = graph_charge(graph, sizeof(*condition)) ? calloc(1, sizeof(*condition)) : NULL;
        if (!condition)
            return CUDA_ERROR_OUT_OF_MEMORY;
        condition->default_value = in->default_value;
        condition->flags = in->flags;
        if (map_put(&graph->conditions, in->condition, condition)) {
            free(condition);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    *ret_condition = condition;
    return CUDA_SUCCESS;
}

static CUresult set_conditional(struct graph *graph, struct graph_node *node,
                                const struct wire_fnGraphConditionalNode *in,
                                const uint32_t *counts, uint32_t count)
{
    struct graph_node what = {.kind = GRAPH_NODE_CONDITIONAL};
    size_t size = sizeof(*what.conditional);
    struct graph_condition *condition;
    CUresult result = know_condition(graph, in, &condition);

    if (result != CUDA_SUCCESS)
        return result;
    what.conditional = graph_charge(graph, size) ? malloc(size) : NULL;
    if (!what.conditional)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *what.conditional =
        (struct graph_conditional){.condition = condition, .type = in->kind, .body_count = count};
    take_in(graph, (uint32_t)(node - graph->nodes), counts, count);
    graph_node_become(graph, node, &what);
    return CUDA_SUCCESS;
}

CUresult graph_describe_conditional(struct graph *graph,
                                    const struct wire_fnGraphConditionalNode *in)
{
    uint32_t count = in->bodies_size / sizeof(uint32_t);
    struct graph_node *node = in->node < graph->node_count ? &graph->nodes[in->node] : NULL;

    if (!node || graph->instantiated || graph->edge_count || node->kind != GRAPH_NODE_EMPTY ||
        !in->condition || !count || in->bodies_size % sizeof(uint32_t)) {
        session_log_error(graph->session, "cuGraphAddNode: a conditional node is malformed");
        return CUDA_ERROR_INVALID_VALUE;
    }
    uint32_t *counts = malloc(in->bodies_size);
    if (!counts)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(counts, in->bodies, in->bodies_size);
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    if (depth_of(graph, node) >= DEPTH_MAX) {
        session_log_error(graph->session,
                          "cuGraphAddNode: more than %u conditional nodes are in "
                          "each other",
                          DEPTH_MAX);
        result = CUDA_ERROR_NOT_SUPPORTED;
    } else if (counts_fit(graph, node, counts, count)) {
        result = set_conditional(graph, node, in, counts, count);
    }
    free(counts);
    return result;
}

void graph_conditions_free(struct graph *graph)
{
    const struct map_entry *entry;

    for (size_t cursor = 0; (entry = map_next(&graph->conditions, &cursor));)
        free(entry->value);
    map_fini(&graph->conditions);
}

/* ---- building ---- */

CUresult graph_make_conditions(struct graph *graph)
{
    const struct map_entry *entry;
    CUresult result = CUDA_SUCCESS;

    if (!graph->conditions.count)
        return CUDA_SUCCESS;
    if (!driver.cuGraphConditionalHandleCreate || !driver.cuGraphAddNode_v2)
        return CUDA_ERROR_NOT_SUPPORTED;
    for (size_t cursor = 0;
         result == CUDA_SUCCESS && (entry = map_next(&graph->conditions, &cursor));) {
        struct graph_condition *condition = entry->value;

        result = driver.cuGraphConditionalHandleCreate(&condition->handle, graph->driver,
                                                       graph->device->context,
                                                       condition->default_value, condition->flags);
    }
    return result;
}

CUgraph graph_driver_of(const struct graph *graph, const struct graph_node *node)
{
    return node->container ? graph->nodes[node->container - 1].conditional->bodies[node->body]
                           : graph->driver;
}

CUresult graph_add_conditional(struct graph *graph, struct graph_node *node,
                               const CUgraphNode *before, size_t count)
{
    struct graph_conditional *conditional = node->conditional;
    CUgraphNodeParams params = {
        .type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
        .conditional = {.handle = conditional->condition->handle,
                        .type = conditional->type,
                        .size = conditional->body_count,
                        .ctx = graph->device->context},
    };
    CUresult result = driver.cuGraphAddNode_v2(&node->driver, graph_driver_of(graph, node), before,
                                               NULL, count, &params);

    if (result == CUDA_SUCCESS)
        conditional->bodies = params.conditional.phGraph_out;
    return result;
}

/* ---- parameters ---- */

static struct graph_condition *condition_at(const struct graph *graph, const void *params,
                                            size_t offset)
{
    uint64_t word;

    memcpy(&word, (const unsigned char *)params + offset, sizeof(word));
    return word ? map_get(&graph->conditions, word) : NULL;
}

CUresult graph_translate_params(const struct graph *graph, struct launch *launch, void **ret_copy)
{
    uint32_t size = launch->shape.params_size;

    *ret_copy = NULL;
    if (!graph->conditions.count || !size)
        return CUDA_SUCCESS;
    unsigned char *copy = malloc(size);
    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(copy, launch->params, size);
    for (size_t at = 0; at + sizeof(uint64_t) <= size; at += sizeof(uint64_t)) {
        const struct graph_condition *condition = condition_at(graph, launch->params, at);

        if (condition)
            memcpy(copy + at, &condition->handle, sizeof(condition->handle));
    }
    launch->params = copy;
    *ret_copy = copy;
    return CUDA_SUCCESS;
}

static void mark_used(const struct graph *graph, const struct launch *launch)
{
    for (size_t at = 0; at + sizeof(uint64_t) <= launch->shape.params_size;
         at += sizeof(uint64_t)) {
        struct graph_condition *condition = condition_at(graph, launch->params, at);

        if (condition)
            condition->used = true;
    }
}

CUresult graph_check_conditions(struct graph *graph)
{
    const struct map_entry *entry;

    if (!graph->conditions.count)
        return CUDA_SUCCESS;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        if (graph->nodes[i].kind == GRAPH_NODE_KERNEL)
            mark_used(graph, &graph->nodes[i].kernel->launch);
    }
    for (size_t cursor = 0; (entry = map_next(&graph->conditions, &cursor));) {
        if (((const struct graph_condition *)entry->value)->used)
            continue;
        session_log_error(graph->session,
                          "cuGraphInstantiate: the handle of a conditional node is in the "
                          "parameters of no kernel of the graph");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return CUDA_SUCCESS;
}
