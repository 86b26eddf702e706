/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches a graph without the driver's graph. Each node has a higher number than its dependencies,
 * and one stream keeps that order.
 */
#include "graph_replay.h"

#include <string.h>

#include "copy_chunks.h"
#include "launch.h"
#include "stream.h"
#include "trace_format.h"

static CUresult replay_node(const struct graph_node *node, const struct stream *stream)
{
    const struct window *window = stream->session->window;

    switch (node->kind) {
    case GRAPH_NODE_KERNEL:
        return launch_with(&node->kernel->launch, stream, node->kernel->attributes,
                           node->kernel->attribute_count);
    case GRAPH_NODE_COPY:
        return copy_chunks_box(window, &node->copy, stream->driver);
    case GRAPH_NODE_MEMSET:
        return copy_chunks_memset(window, &node->memset, stream->driver);
    default:
        return CUDA_SUCCESS;
    }
}

static void describe_kernel(const struct graph_kernel *kernel, struct graph_node_work *work)
{
    work->kind = TRACE_KERNEL;
    work->function = kernel->launch.function;
    work->shared_bytes = kernel->launch.shape.shared;
    memcpy(work->grid, kernel->launch.shape.grid, sizeof(work->grid));
    memcpy(work->block, kernel->launch.shape.block, sizeof(work->block));
}

static void describe_copy(const CUDA_MEMCPY3D *copy, struct graph_node_work *work)
{
    work->kind = TRACE_COPY;
    work->to = copy->dstMemoryType == CU_MEMORYTYPE_ARRAY ? 0 : copy->dstDevice;
    work->from = copy->srcMemoryType == CU_MEMORYTYPE_ARRAY ? 0 : copy->srcDevice;
    work->bytes = copy->WidthInBytes * copy->Height * copy->Depth;
}

static void describe_memset(const struct wire_fnMemset *memset, struct graph_node_work *work)
{
    work->kind = TRACE_MEMSET;
    work->to = memset->dst;
    work->value = memset->value;
    work->bytes = memset->width * memset->height * memset->element_size;
}

static struct graph_node_work describe_node(const struct graph *graph,
                                            const struct graph_node *node)
{
    struct graph_node_work work = {.graph = graph->handle, .node = (uint32_t)(node - graph->nodes)};

    if (node->kind == GRAPH_NODE_KERNEL)
        describe_kernel(node->kernel, &work);
    else if (node->kind == GRAPH_NODE_COPY)
        describe_copy(&node->copy, &work);
    else if (node->kind == GRAPH_NODE_MEMSET)
        describe_memset(&node->memset, &work);
    return work;
}

static CUresult replay_timed(const struct graph *graph, const struct graph_node *node,
                             struct stream *stream)
{
    const struct graph_timer *timer = graph->session->graphs->timer;
    const struct graph_node_work work = describe_node(graph, node);
    CUresult result;

    timer->before(timer->context, stream, &work);
    result = replay_node(node, stream);
    timer->after(timer->context);
    return result;
}

CUresult graph_replay(const struct graph *graph, struct stream *stream)
{
    const struct graph_timer *timer = graph->session->graphs->timer;
    CUresult result = CUDA_SUCCESS;

    for (uint32_t i = 0; i < graph->node_count && result == CUDA_SUCCESS; i++) {
        const struct graph_node *node = &graph->nodes[i];

        if (!node->disabled && node->kind != GRAPH_NODE_EMPTY)
            result = timer ? replay_timed(graph, node, stream) : replay_node(node, stream);
    }
    return result;
}
