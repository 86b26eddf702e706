/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instantiation and launches of graphs.
 */
#include "cuda_graph.h"
#include "device_printf.h"
#include "function.h"
#include "graph_build.h"
#include "graph_conditional.h"
#include "graph_ending.h"
#include "graph_replay.h"
#include "graph_state.h"
#include "graph_turn.h"
#include "launch_record.h"
#include "server_dispatch.h"
#include "stream.h"

/* The client sends uploads separately, and manages the memory of graphs itself. */
#define FLAGS_PASSED CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY

static uint32_t count_empty(const struct graph *graph)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < graph->node_count; i++)
        count += graph->nodes[i].kind == GRAPH_NODE_EMPTY;
    return count;
}

/* Counts empty nodes, because a node without a description would be skipped silently. */
static CUresult check_complete(const struct graph *graph, uint32_t empty)
{
    if (graph->instantiated)
        return CUDA_ERROR_INVALID_VALUE;
    if (graph->refused != CUDA_SUCCESS)
        return graph->refused;
    if (count_empty(graph) == empty)
        return CUDA_SUCCESS;
    session_log_error(graph->session, "cuGraphInstantiate: %u nodes are empty, not %u",
                      count_empty(graph), empty);
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult serve_cuGraphInstantiateWithFlags(struct session *session,
                                           const struct wire_cuGraphInstantiateWithFlags *in,
                                           struct graph *graph)
{
    CUresult result = check_complete(graph, in->empty);

    if (result == CUDA_SUCCESS && !graph_addresses_hold(graph))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = graph_check_conditions(graph);
    if (result == CUDA_SUCCESS)
        result = session_enter(session, graph->device);
    if (result != CUDA_SUCCESS)
        return result;
    graph->flags = in->flags & FLAGS_PASSED;
    result = graph->is_split ? CUDA_SUCCESS : graph_prepare(graph);
    graph->instantiated = result == CUDA_SUCCESS;
    return result;
}

/* A node runs in the context of its creation instead of in that of its stream. And a node that
 * needs several calls does not fit into the driver's graph. A profiler wants the times of each. */
static bool goes_node_by_node(const struct graph *graph, const struct stream *stream)
{
    bool is_timed = graph->session->graphs->timer && !graph->conditions.count;

    return graph->is_split || stream_is_confined(stream) || is_timed;
}

/* Conditional nodes need the driver's graph. */
static CUresult check_way(const struct graph *graph, const struct stream *stream)
{
    if (!graph->conditions.count || !goes_node_by_node(graph, stream))
        return CUDA_SUCCESS;
    session_log_error(graph->session,
                      "cuGraphLaunch: a graph with conditional nodes can be launched neither in an "
                      "SM share nor with a copy across chunks of page-locked memory");
    return CUDA_ERROR_NOT_SUPPORTED;
}

/* Checks the addresses again, because memory may have been released since the description. Updates
 * the driver's graph, and orders the stream. */
static CUresult begin_launch(struct session *session, struct graph *graph, struct stream *stream)
{
    CUresult result = graph->instantiated ? graph->refused : CUDA_ERROR_INVALID_VALUE;

    if (result == CUDA_SUCCESS && !graph_addresses_hold(graph))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = check_way(graph, stream);
    if (result == CUDA_SUCCESS)
        result = session_enter(session, graph->device);
    if (result == CUDA_SUCCESS && !goes_node_by_node(graph, stream))
        result = graph_prepare(graph);
    return result != CUDA_SUCCESS ? result : stream_begin_work(stream);
}

CUresult serve_cuGraphUpload(struct session *session, const struct wire_cuGraphUpload *in,
                             struct graph *graph, struct stream *hStream)
{
    CUresult result = begin_launch(session, graph, hStream);

    (void)in;
    if (result == CUDA_SUCCESS && graph->exec && driver.cuGraphUpload)
        result = driver.cuGraphUpload(graph->exec, hStream->driver);
    return stream_end_work(hStream, 0, result);
}

static CUresult launch_graph(const struct graph *graph, struct stream *stream)
{
    if (goes_node_by_node(graph, stream))
        return graph_replay(graph, stream);
    if (!graph->conditions.count)
        return driver.cuGraphLaunch(graph->exec, stream->driver);
    CUresult result = graph_launch_in_turn(graph, stream);
    return result != CUDA_SUCCESS ? result : graph_note_launch(graph, stream);
}

static void announce_all(struct session *session, const struct graph *graph, struct stream *stream)
{
    if (graph->uses & FUNCTION_MAY_PRINT)
        print_checkpoint_open(stream);
    session->limits_used[graph->device->ordinal] |= graph->uses;
    for (unsigned i = 0; i < graph->formats.count; i++)
        device_printf_begin(session, graph->device, graph->formats.each[i]);
    if (graph->formats.has_unknown)
        device_printf_begin(session, graph->device, NULL);
}

CUresult serve_cuGraphLaunch(struct session *session, const struct wire_cuGraphLaunch *in,
                             struct graph *graph, struct stream *hStream)
{
    CUresult result = begin_launch(session, graph, hStream);

    if (graph->last)
        launch_record(session, graph->kernel_count, graph->last->handle, graph->last->name);
    stream_note_kernel(hStream, graph->widest);
    if (result == CUDA_SUCCESS)
        announce_all(session, graph, hStream);
    if (result == CUDA_SUCCESS)
        result = launch_graph(graph, hStream);
    return stream_end_work(hStream, in->seq, result);
}
