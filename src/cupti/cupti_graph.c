/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See cupti_graph.h. A handle has its place and generation in its low half. Graphs and launchable
 * graphs have one table, so this half is the number of each. The records of the nodes of a launch
 * name the call that launched, whose graph is kept here.
 */
#include "cupti_graph.h"

#include <stdatomic.h>
#include <stddef.h>

#include "cupti_functions.h"

/* More launches than the server measures at a time. */
#define LAUNCHES 4096u

static _Atomic uint64_t launches[LAUNCHES]; /* the correlation number, and the graph's */

static uint32_t number_of(const void *handle)
{
    return (uint32_t)(uintptr_t)handle;
}

void cupti_graph_launched(const void *arguments, uint32_t correlation)
{
    const CUgraphExec *graph = arguments;

    if (graph)
        atomic_store_explicit(&launches[correlation % LAUNCHES],
                              (uint64_t)correlation << 32 | number_of(*graph),
                              memory_order_relaxed);
}

uint32_t cupti_graph_of_launch(uint32_t correlation)
{
    uint64_t launch = atomic_load_explicit(&launches[correlation % LAUNCHES], memory_order_relaxed);

    return launch >> 32 == correlation ? (uint32_t)launch : 0;
}

uint64_t cupti_graph_node(const void *graph, uint32_t number)
{
    return (uint64_t)number_of(graph) << 32 | (number + 1);
}

uint64_t cupti_graph_node_of(const struct profiler_work *work)
{
    return work->graph ? cupti_graph_node((const void *)(uintptr_t)work->graph, work->node) : 0;
}

/* ---- CUPTI's functions ---- */

CUptiResult cuptiGetGraphId(CUgraph graph, uint32_t *ret_id)
{
    if (!graph || !ret_id)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *ret_id = number_of(graph);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetGraphExecId(CUgraphExec graph, uint32_t *ret_id)
{
    if (!graph || !ret_id)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *ret_id = number_of(graph);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetGraphNodeId(CUgraphNode node, uint64_t *ret_id)
{
    if (!node || !ret_id)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *ret_id = (uintptr_t)node;
    return CUPTI_SUCCESS;
}
