/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls about capture: beginning, ending, asking.
 */
#include <stdlib.h>

#include "capture_objects.h"

static uint64_t last_id;

CUresult graph_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    CUstreamCaptureMode *own = capture_thread_mode();
    CUstreamCaptureMode before = *own;

    if ((unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    *own = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

/* Finds a stream that can begin a capture. */
static CUresult find_free(CUstream handle, CUstreamCaptureMode mode,
                          struct capture_stream **ret_stream)
{
    if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = graph_backend.stream_locked(handle, ret_stream);
    if (result)
        return result;
    if ((*ret_stream)->is_legacy)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return (*ret_stream)->capture ? CUDA_ERROR_ILLEGAL_STATE : CUDA_SUCCESS;
}

static CUresult begin_capture(struct capture_stream *stream, struct graph *graph, bool is_own_graph,
                              CUstreamCaptureMode mode)
{
    struct capture *capture = calloc(1, sizeof(*capture));

    if (!capture)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (graph_backend.capture_begins_locked)
        graph_backend.capture_begins_locked();
    capture->id = ++last_id;
    capture->graph = graph->handle;
    capture->is_own_graph = is_own_graph;
    capture->mode = mode;
    capture->thread = capture_thread_mode();
    capture->origin = stream;
    list_init(&capture->streams);
    list_append(capture_all(), &capture->in_all);
    capture_join(capture, stream);
    graph->is_captured_into = true;
    return CUDA_SUCCESS;
}

CUresult graph_cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode)
{
    GRAPH_LOCKED;
    struct capture_stream *stream;
    CUresult result = find_free(hStream, mode, &stream);

    if (result)
        return result;
    struct graph *graph = graph_new(true);
    if (!graph)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = begin_capture(stream, graph, true, mode);
    if (result)
        graph_free(graph);
    return result;
}

CUresult graph_cuStreamBeginCapture(CUstream hStream)
{
    return graph_cuStreamBeginCapture_v2(hStream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

/* Adds tails that the program passes. All must be nodes of the graph. */
static CUresult add_tails(struct capture_tails *tails, const struct graph *graph,
                          const CUgraphNode *nodes, const CUgraphEdgeData *data, size_t count)
{
    CUresult result = CUDA_SUCCESS;

    for (size_t i = 0; !result && i < count; i++) {
        const struct graph_node *node = nodes ? graph_node_get(nodes[i]) : NULL;

        result = node && node->graph == graph
                     ? capture_tails_add(tails, nodes[i], data ? &data[i] : NULL)
                     : CUDA_ERROR_INVALID_VALUE;
    }
    return result;
}

CUresult graph_cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph,
                                           const CUgraphNode *dependencies,
                                           const CUgraphEdgeData *dependencyData,
                                           size_t numDependencies, CUstreamCaptureMode mode)
{
    GRAPH_LOCKED;
    struct graph *graph = graph_get(hGraph);
    struct capture_stream *stream;
    CUresult result = find_free(hStream, mode, &stream);

    if (result)
        return result;
    if (!graph || graph->is_captured_into)
        return CUDA_ERROR_INVALID_VALUE;
    result = add_tails(&stream->tails, graph, dependencies, dependencyData, numDependencies);
    if (!result)
        result = begin_capture(stream, graph, false, mode);
    if (result)
        capture_tails_clear(&stream->tails);
    return result;
}

static void push_node(struct graph_node *node, struct graph_node **stack)
{
    if (node->cursor)
        return;
    node->cursor = 1;
    node->next = *stack;
    *stack = node;
}

/* Sets has_to_be_joined of the nodes on which the origin's tails depend. */
static void mark_joined(const struct capture *capture, const struct graph *graph)
{
    const struct capture_tails *tails = &capture->origin->tails;
    struct graph_node *stack = NULL;

    list_for_each (struct graph_node, node, &graph->nodes, in_graph)
        node->cursor = 0;
    for (size_t i = 0; i < tails->count; i++) {
        struct graph_node *node = graph_node_get(tails->nodes[i]);

        if (node)
            push_node(node, &stack);
    }
    while (stack) {
        const struct graph_node *node = stack;

        stack = node->next;
        for (unsigned i = 0; i < node->dependencies.count; i++)
            push_node(node->dependencies.edges[i].node, &stack);
    }
}

static bool are_marked(const struct capture_tails *tails)
{
    for (size_t i = 0; i < tails->count; i++) {
        const struct graph_node *node = graph_node_get(tails->nodes[i]);

        if (node && node->has_to_be_joined && !node->cursor)
            return false;
    }
    return true;
}

/* Whether another stream, perhaps destroyed, captured work for which the origin does not wait. */
static bool has_unjoined(const struct capture *capture, const struct graph *graph)
{
    mark_joined(capture, graph);
    list_for_each (struct capture_stream, stream, &capture->streams, in_capture) {
        if (!are_marked(&stream->tails))
            return true;
    }
    return !are_marked(&capture->orphans);
}

static CUresult check_end(const struct capture *capture, const struct graph *graph)
{
    if (capture->is_invalid || !graph)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    return has_unjoined(capture, graph) ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED : CUDA_SUCCESS;
}

CUresult graph_cuStreamEndCapture(CUstream hStream, CUgraph *phGraph)
{
    GRAPH_LOCKED;
    struct capture_stream *stream;
    CUresult result = graph_backend.stream_locked(hStream, &stream);

    if (result)
        return result;
    struct capture *capture = stream->capture;
    if (!capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (!phGraph && capture->is_own_graph)
        return CUDA_ERROR_INVALID_VALUE; /* no call could ever destroy it */
    if (capture->origin != stream)
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != capture_thread_mode())
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    result = check_end(capture, capture_graph(capture));
    if (phGraph)
        *phGraph = result ? NULL : (CUgraph)(uintptr_t)capture->graph;
    if (result)
        capture_abandon(capture);
    else
        capture_end(capture);
    return result;
}

static CUstreamCaptureStatus status_of(const struct capture *capture)
{
    if (!capture)
        return CU_STREAM_CAPTURE_STATUS_NONE;
    return capture->is_invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                               : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

/* A query of the legacy stream that would have to wait is an error, but does not invalidate the
 * capture. */
static CUresult find_to_ask(CUstream handle, struct capture_stream **ret_stream)
{
    CUresult result = graph_backend.stream_locked(handle, ret_stream);

    if (result)
        return result;
    return (*ret_stream)->is_legacy && capture_blocking((*ret_stream)->context)
               ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
               : CUDA_SUCCESS;
}

CUresult graph_cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus)
{
    GRAPH_LOCKED;
    struct capture_stream *stream;

    CUresult result = find_to_ask(hStream, &stream);
    if (!result)
        *captureStatus = status_of(stream->capture);
    return result;
}

CUresult graph_cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
                                         cuuint64_t *id_out, CUgraph *graph_out,
                                         const CUgraphNode **dependencies_out,
                                         const CUgraphEdgeData **edgeData_out,
                                         size_t *numDependencies_out)
{
    GRAPH_LOCKED;
    struct capture_stream *stream;

    if (!captureStatus_out)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = find_to_ask(hStream, &stream);
    if (result)
        return result;
    const struct capture *capture = stream->capture;
    *captureStatus_out = status_of(capture);
    if (id_out)
        *id_out = capture ? capture->id : 0;
    if (!capture || capture->is_invalid)
        return CUDA_SUCCESS;
    if (graph_out)
        *graph_out = (CUgraph)(uintptr_t)capture->graph;
    if (dependencies_out)
        *dependencies_out = stream->tails.nodes;
    if (edgeData_out)
        *edgeData_out = stream->tails.data;
    if (numDependencies_out)
        *numDependencies_out = stream->tails.count;
    return CUDA_SUCCESS;
}

CUresult graph_cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
                                         cuuint64_t *id_out, CUgraph *graph_out,
                                         const CUgraphNode **dependencies_out,
                                         size_t *numDependencies_out)
{
    return graph_cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, graph_out,
                                           dependencies_out, NULL, numDependencies_out);
}

CUresult graph_cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
                                      cuuint64_t *id_out)
{
    return graph_cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, NULL, NULL, NULL,
                                           NULL);
}

static bool tails_contain(const struct capture_tails *tails, CUgraphNode node)
{
    for (size_t i = 0; i < tails->count; i++) {
        if (tails->nodes[i] == node)
            return true;
    }
    return false;
}

/* Nodes that a program removes from a stream's dependencies need no join any more. */
static void forget_removed(const struct capture_tails *before, const struct capture_tails *after)
{
    for (size_t i = 0; i < before->count; i++) {
        struct graph_node *node = graph_node_get(before->nodes[i]);

        if (node && !tails_contain(after, before->nodes[i]))
            node->has_to_be_joined = false;
    }
}

CUresult graph_cuStreamUpdateCaptureDependencies_v2(CUstream hStream, CUgraphNode *dependencies,
                                                    const CUgraphEdgeData *dependencyData,
                                                    size_t numDependencies, unsigned int flags)
{
    GRAPH_LOCKED;
    struct capture_stream *stream;
    struct capture_tails tails = {0};
    CUresult result = graph_backend.stream_locked(hStream, &stream);

    if (result)
        return result;
    if (!stream->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (stream->capture->is_invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags == CU_STREAM_ADD_CAPTURE_DEPENDENCIES)
        result = capture_tails_join(&tails, &stream->tails);
    if (!result)
        result = add_tails(&tails, capture_graph(stream->capture), dependencies, dependencyData,
                           numDependencies);
    if (result) {
        capture_tails_clear(&tails);
        return result;
    }
    forget_removed(&stream->tails, &tails);
    capture_tails_clear(&stream->tails);
    stream->tails = tails;
    return CUDA_SUCCESS;
}

CUresult graph_cuStreamUpdateCaptureDependencies(CUstream hStream, CUgraphNode *dependencies,
                                                 size_t numDependencies, unsigned int flags)
{
    return graph_cuStreamUpdateCaptureDependencies_v2(hStream, dependencies, NULL, numDependencies,
                                                      flags);
}
