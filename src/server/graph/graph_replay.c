/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches a graph without the driver's graph. Each node has a higher number than its dependencies,
 * and one stream keeps that order.
 */
#include "graph_replay.h"

#include "copy_chunks.h"
#include "launch.h"
#include "stream.h"

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

CUresult graph_replay(const struct graph *graph, const struct stream *stream)
{
    CUresult result = CUDA_SUCCESS;

    for (uint32_t i = 0; i < graph->node_count && result == CUDA_SUCCESS; i++)
        if (!graph->nodes[i].disabled)
            result = replay_node(&graph->nodes[i], stream);
    return result;
}
