/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A capture has an origin, the stream in which it begins and must end, and streams that joined by
 * waiting for its events. An error invalidates the capture, and cuStreamEndCapture then reports it.
 */
#include "capture_objects.h"
#include "graph_kernel.h"
#include "graph_memory.h"
#include "graph_work.h"

#include <stdlib.h>
#include <string.h>

static struct list captures = {&captures, &captures};

CUstreamCaptureMode *capture_thread_mode(void)
{
    static __thread CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

    return &mode;
}

struct list *capture_all(void)
{
    return &captures;
}

void capture_tails_clear(struct capture_tails *tails)
{
    free(tails->nodes);
    free(tails->data);
    *tails = (struct capture_tails){0};
}

static bool is_ordinary(const CUgraphEdgeData *data)
{
    static const CUgraphEdgeData ordinary;

    return !data || memcmp(data, &ordinary, sizeof(ordinary)) == 0;
}

/* A wait for the whole node includes a wait for each of its ports. */
CUresult capture_tails_add(struct capture_tails *tails, CUgraphNode node,
                           const CUgraphEdgeData *edge)
{
    for (size_t i = 0; i < tails->count; i++) {
        if (tails->nodes[i] != node)
            continue;
        if (is_ordinary(edge))
            memset(&tails->data[i], 0, sizeof(tails->data[i]));
        return CUDA_SUCCESS;
    }
    CUgraphNode *nodes = realloc(tails->nodes, (tails->count + 1) * sizeof(*nodes));
    if (!nodes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    tails->nodes = nodes;
    CUgraphEdgeData *data = realloc(tails->data, (tails->count + 1) * sizeof(*data));
    if (!data)
        return CUDA_ERROR_OUT_OF_MEMORY;
    tails->data = data;
    data[tails->count] = edge ? *edge : (CUgraphEdgeData){0};
    nodes[tails->count++] = node;
    return CUDA_SUCCESS;
}

CUresult capture_tails_join(struct capture_tails *tails, const struct capture_tails *more)
{
    CUresult result = CUDA_SUCCESS;

    for (size_t i = 0; !result && i < more->count; i++)
        result = capture_tails_add(tails, more->nodes[i], &more->data[i]);
    return result;
}

void capture_join(struct capture *capture, struct capture_stream *stream)
{
    stream->capture = capture;
    list_append(&capture->streams, &stream->in_capture);
}

static void leave_capture(struct capture_stream *stream)
{
    list_remove(&stream->in_capture);
    stream->capture = NULL;
    capture_tails_clear(&stream->tails);
}

void capture_end(struct capture *capture)
{
    struct graph *graph = capture_graph(capture);

    list_for_each_safe (struct capture_stream, stream, &capture->streams, in_capture)
        leave_capture(stream);
    if (graph)
        graph->is_captured_into = false;
    capture_tails_clear(&capture->orphans);
    list_remove(&capture->in_all);
    free(capture);
}

/* A graph that the program has not received yet is destroyed with its capture. */
void capture_abandon(struct capture *capture)
{
    struct graph *graph = capture->is_own_graph ? capture_graph(capture) : NULL;

    capture_end(capture);
    graph_free(graph);
}

static struct capture *find_capture(uint64_t id)
{
    list_for_each (struct capture, capture, &captures, in_all) {
        if (capture->id == id)
            return capture;
    }
    return NULL;
}

static CUresult invalidate(struct capture *capture, CUresult why)
{
    if (capture)
        capture->is_invalid = true;
    return why;
}

/* Only a kernel has ports. */
static const CUgraphEdgeData *edge_from(const struct graph_node *from, const CUgraphEdgeData *data)
{
    return from->work.type == CU_GRAPH_NODE_TYPE_KERNEL ? data : NULL;
}

/* Takes the work in any case. `data` overrides the edge data of the tails; NULL = does not. */
static CUresult append_with(struct capture_stream *stream, struct graph_work *work,
                            const CUgraphEdgeData *data)
{
    struct graph *graph = capture_graph(stream->capture);
    struct graph_node *node;
    CUresult result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;

    if (graph && !stream->capture->is_invalid)
        result = graph_add(graph, true, work, &node);
    if (result) {
        graph_work_fini(work);
        return result;
    }
    for (size_t i = 0; !result && i < stream->tails.count; i++) {
        struct graph_node *tail = graph_node_get(stream->tails.nodes[i]);

        if (tail && tail->graph == graph)
            result =
                graph_connect(tail, node, edge_from(tail, data ? data : &stream->tails.data[i]));
    }
    if (result) {
        graph_remove(node);
        return result;
    }
    node->has_to_be_joined = true;
    capture_tails_clear(&stream->tails);
    return capture_tails_add(&stream->tails, graph_node_handle(node), NULL);
}

static CUresult append_node(struct capture_stream *stream, struct graph_work *work)
{
    return append_with(stream, work, NULL);
}

/* Programmatic dependent launch: the kernel may begin before its predecessor has ended. */
static const CUgraphEdgeData *edges_of_launch(const CUlaunchAttribute *attributes, unsigned count)
{
    static const CUgraphEdgeData programmatic = {.from_port =
                                                     CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
                                                 .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};

    for (unsigned i = 0; i < count; i++) {
        if (attributes[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
            attributes[i].value.programmaticStreamSerializationAllowed)
            return &programmatic;
    }
    return NULL;
}

CUresult capture_kernel_locked(struct capture_stream *stream, const CUDA_KERNEL_NODE_PARAMS *params,
                               const CUlaunchAttribute *attributes, unsigned count)
{
    CUDA_KERNEL_NODE_PARAMS here = *params;
    struct graph_work work;

    if (!here.ctx)
        here.ctx = stream->context;
    CUresult result = graph_work_kernel(&here, &work);
    if (result)
        return result;
    for (unsigned i = 0; i < count; i++) {
        result = graph_kernel_set_attribute(&work.kernel, attributes[i].id, &attributes[i].value);
        if (result == CUDA_ERROR_OUT_OF_MEMORY) {
            graph_work_fini(&work);
            return result;
        }
    }
    return append_with(stream, &work, edges_of_launch(attributes, count));
}

CUresult capture_copy_locked(struct capture_stream *stream, const CUDA_MEMCPY3D *copy)
{
    struct graph_work work;
    CUresult result = graph_work_copy_box(copy, stream->context, &work);

    return result ? result : append_node(stream, &work);
}

CUresult capture_fill_locked(struct capture_stream *stream, const CUDA_MEMSET_NODE_PARAMS *fill)
{
    struct graph_work work;
    CUresult result = graph_work_captured_fill(fill, stream->context, &work);

    return result ? result : append_node(stream, &work);
}

CUresult capture_host_locked(struct capture_stream *stream, CUhostFn function, void *user)
{
    const CUDA_HOST_NODE_PARAMS host = {.fn = function, .userData = user};
    struct graph_work work;
    CUresult result = graph_work_host(&host, &work);

    return result ? result : append_node(stream, &work);
}

CUresult capture_mem_ops_locked(struct capture_stream *stream, unsigned count,
                                const CUstreamBatchMemOpParams *ops)
{
    const CUDA_BATCH_MEM_OP_NODE_PARAMS params = {
        .ctx = stream->context,
        .count = count,
        .paramArray = (CUstreamBatchMemOpParams *)ops,
    };
    struct graph_work work;
    CUresult result = graph_work_mem_ops(&params, &work);

    return result ? result : append_node(stream, &work);
}

CUresult capture_allocate_locked(struct capture_stream *stream,
                                 const CUDA_MEM_ALLOC_NODE_PARAMS *params, CUdeviceptr *ret_address)
{
    struct graph_work work;
    CUresult result = stream->capture->is_invalid
                          ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                          : graph_work_allocate(params, stream->context, &work);

    if (!result)
        result = append_node(stream, &work);
    if (!result)
        *ret_address = work.memory->address;
    return result;
}

CUresult capture_free_locked(struct capture_stream *stream, CUdeviceptr address)
{
    struct graph_work work;
    CUresult result = stream->capture->is_invalid
                          ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                          : graph_work_free(capture_graph(stream->capture), address, &work);

    return result ? result : append_node(stream, &work);
}

CUresult capture_exec_locked(struct capture_stream *stream, const struct graph_exec *exec)
{
    struct graph_work work;
    CUresult result = graph_work_child(exec->graph, &work);

    return result ? result : append_node(stream, &work);
}

static CUresult append_event(struct capture_stream *stream, CUgraphNodeType type, CUevent event)
{
    struct graph_work work;
    CUresult result = graph_work_event(type, event, &work);

    return result ? result : append_node(stream, &work);
}

CUresult capture_record_locked(struct capture_stream *stream, struct capture_event *event,
                               CUevent handle, unsigned flags)
{
    if (stream->capture->is_invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (flags & CU_EVENT_RECORD_EXTERNAL)
        return append_event(stream, CU_GRAPH_NODE_TYPE_EVENT_RECORD, handle);
    capture_event_forget_locked(event);
    CUresult result = capture_tails_join(&event->tails, &stream->tails);
    if (result)
        capture_event_forget_locked(event);
    else
        event->capture = stream->capture->id;
    return result;
}

CUresult capture_record_port_locked(struct capture_stream *stream, struct capture_event *event,
                                    CUevent handle, CUgraphEdgeData data)
{
    CUresult result = capture_record_locked(stream, event, handle, CU_EVENT_RECORD_DEFAULT);

    for (size_t i = 0; !result && i < event->tails.count; i++)
        event->tails.data[i] = data;
    return result;
}

void capture_event_forget_locked(struct capture_event *event)
{
    capture_tails_clear(&event->tails);
    event->capture = 0;
}

/* For a stream that captures already. */
static CUresult wait_inside(struct capture_stream *stream, const struct capture_event *event,
                            bool is_recorded)
{
    struct capture *other = event->capture ? find_capture(event->capture) : NULL;

    if (!event->capture && !is_recorded)
        return CUDA_SUCCESS;
    if (!other)
        return invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    if (other == stream->capture)
        return capture_tails_join(&stream->tails, &event->tails);
    invalidate(other, CUDA_ERROR_STREAM_CAPTURE_MERGE);
    return invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
}

/* A stream that waits for a captured event is captured from now on. */
static CUresult wait_outside(struct capture_stream *stream, const struct capture_event *event)
{
    struct capture *capture = find_capture(event->capture);

    if (!capture)
        return CUDA_ERROR_CAPTURED_EVENT;
    if (capture->is_invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream->is_legacy)
        return invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    CUresult result = capture_tails_join(&stream->tails, &event->tails);
    if (result)
        capture_tails_clear(&stream->tails);
    else
        capture_join(capture, stream);
    return result;
}

CUresult capture_wait_locked(struct capture_stream *stream, struct capture_event *event,
                             CUevent handle, unsigned flags, bool is_recorded)
{
    if (!stream->capture)
        return event->capture ? wait_outside(stream, event) : CUDA_SUCCESS;
    if (stream->capture->is_invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (flags & CU_EVENT_WAIT_EXTERNAL)
        return append_event(stream, CU_GRAPH_NODE_TYPE_WAIT_EVENT, handle);
    return wait_inside(stream, event, is_recorded);
}

CUresult capture_refuse_event_locked(struct capture_event *event)
{
    if (!event->capture)
        return CUDA_SUCCESS;
    return invalidate(find_capture(event->capture), CUDA_ERROR_CAPTURED_EVENT);
}

CUresult capture_refuse_locked(struct capture_stream *stream)
{
    if (!stream->capture)
        return CUDA_SUCCESS;
    if (stream->capture->is_invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    return invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

struct capture *capture_blocking(CUcontext context)
{
    list_for_each (struct capture, capture, &captures, in_all) {
        list_for_each (struct capture_stream, stream, &capture->streams, in_capture) {
            if (stream->is_blocking && stream->context == context)
                return capture;
        }
    }
    return NULL;
}

CUresult capture_legacy_locked(CUcontext context)
{
    struct capture *capture = capture_blocking(context);

    return capture ? invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) : CUDA_SUCCESS;
}

/* Whether this thread's mode and that of the capture forbid unsafe calls. */
static bool forbids_unsafe_calls(const struct capture *capture)
{
    CUstreamCaptureMode mode = *capture_thread_mode();

    if (mode == CU_STREAM_CAPTURE_MODE_RELAXED || capture->is_invalid)
        return false;
    if (capture->thread == capture_thread_mode())
        return capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    return mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

CUresult capture_unsafe_locked(void)
{
    CUresult result = CUDA_SUCCESS;

    list_for_each (struct capture, capture, &captures, in_all) {
        if (forbids_unsafe_calls(capture))
            result = invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    return result;
}

void capture_stream_gone_locked(struct capture_stream *stream)
{
    struct capture *capture = stream->capture;

    if (!capture)
        return;
    if (capture->origin == stream) {
        capture_abandon(capture);
        return;
    }
    if (capture_tails_join(&capture->orphans, &stream->tails))
        invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    leave_capture(stream);
}
