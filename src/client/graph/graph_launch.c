/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launching graphs. A graph without steps is one command. Where the program takes part, its steps
 * are between the segments as they would be between other commands of the stream. A second launch
 * waits for the first one, on whatever stream that was.
 */
#include <stdlib.h>

#include "cleanup.h"
#include "client_call.h"
#include "client_capture.h"
#include "client_copy.h"
#include "client_event.h"
#include "client_mem_ops.h"
#include "client_prototypes.h"
#include "copy_array.h"
#include "exec_plan.h"
#include "graph_backend.h"
#include "graph_blocks.h"
#include "graph_memory.h"
#include "host_function.h"
#include "managed_hooks.h"
#include "stream_commands.h"
#include "wire_calls.h"

/* The next kernel of a graph that is launched with it, or NULL. */
static const struct graph_kernel *next_kernel(const struct graph_exec *exec, unsigned *at)
{
    while (*at < exec->count) {
        const struct graph_node *node = exec->nodes[(*at)++];

        if (node->work.type == CU_GRAPH_NODE_TYPE_KERNEL && !node->disabled)
            return &node->work.kernel;
    }
    return NULL;
}

/* Any of its segments may have any of its kernels. */
static void give_locked(const struct graph_exec *exec, const struct stream *stream)
{
    const struct graph_kernel *kernel;

    if (!managed_any())
        return;
    for (unsigned at = 0; (kernel = next_kernel(exec, &at));)
        managed_announce(stream, kernel->buffer, kernel->buffer_size);
    for (unsigned at = 0; (kernel = next_kernel(exec, &at));)
        managed_given(stream, kernel->buffer, kernel->buffer_size);
}

static CUresult send_segment(const struct graph_exec *exec, uint64_t segment, struct stream *stream)
{
    const struct wire_cuGraphLaunch in = {.graph = segment, .hStream = stream->handle};
    CUresult result;

    if (!segment)
        return CUDA_SUCCESS;
    stream_begin(stream);
    managed_work();
    give_locked(exec, stream);
    result = wire_cuGraphLaunch(&client->channel, &in);
    stream_end();
    return result;
}

/* ---- steps ---- */

static void copy_rows_once(void *box)
{
    copy_rows(box);
    free(box);
}

/* Has the thread of host functions make the copies that read or write the program's memory. */
static CUresult queue_rows(const struct box *box, struct stream *stream)
{
    struct box *copy = malloc(sizeof(*copy));
    CUresult result;

    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *copy = *box;
    result = host_function_queue(stream, copy_rows_once, copy);
    if (result != CUDA_SUCCESS)
        free(copy);
    return result;
}

static struct box into_staging(const struct box *box, uint64_t staging)
{
    struct box part = *box;

    box_set_dst(&part, staging);
    return part;
}

static struct box from_staging(const struct box *box, uint64_t staging)
{
    struct box part = *box;

    box_set_src(&part, staging);
    return part;
}

static CUresult step_array(const struct box *box, enum place dst, enum place src, uint64_t staging,
                           struct stream *stream)
{
    const struct box in = into_staging(box, staging), out = from_staging(box, staging);
    CUresult result;

    if (src == PLACE_PAGEABLE) {
        result = queue_rows(&in, stream);
        return result == CUDA_SUCCESS ? copy_array(&out, stream) : result;
    }
    if (dst == PLACE_PAGEABLE) {
        result = copy_array(&in, stream);
        return result == CUDA_SUCCESS ? queue_rows(&out, stream) : result;
    }
    return copy_array(box, stream);
}

static CUresult step_copy(const struct graph_work *work, enum plan_kind kind, uint64_t staging,
                          struct stream *stream)
{
    enum place dst, src;
    struct box box;
    CUresult result = graph_node_box(work, &box, &dst, &src);

    if (result != CUDA_SUCCESS || box_is_empty(&box))
        return result;
    if (box_has_array(&box))
        return step_array(&box, dst, src, staging, stream);
    if (kind == PLAN_UP)
        box = into_staging(&box, staging);
    if (kind == PLAN_DOWN)
        box = from_staging(&box, staging);
    return queue_rows(&box, stream);
}

static CUresult take_step(const struct graph_exec *exec, uint32_t index, struct stream *stream)
{
    const struct exec_plan *plan = exec->owner;
    const struct graph_node *node = exec->nodes[index];
    const struct graph_work *work = &node->work;

    if (node->disabled)
        return CUDA_SUCCESS;
    switch (work->type) {
    case CU_GRAPH_NODE_TYPE_HOST:
        return host_function_queue(stream, work->host.fn, work->host.userData);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return mem_ops_on(stream, work->mem_ops.count, work->mem_ops.ops);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return event_record_on(work->event, stream);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return event_wait_on(work->event, stream);
    default:
        return step_copy(work, plan->nodes[index].kind, plan->states[index].staging, stream);
    }
}

static CUresult launch_in_phases(const struct graph_exec *exec, struct stream *stream)
{
    const struct exec_plan *plan = exec->owner;
    uint32_t step = 0;
    CUresult result = event_wait_on(plan->behind, stream);

    for (uint32_t phase = 0; phase < plan->phase_count && result == CUDA_SUCCESS; phase++) {
        result = send_segment(exec, plan->segments[phase], stream);
        for (; step < plan->step_count && plan->nodes[plan->steps[step]].phase == phase; step++)
            if (result == CUDA_SUCCESS)
                result = take_step(exec, plan->steps[step], stream);
    }
    return result == CUDA_SUCCESS ? event_record_on(plan->behind, stream) : result;
}

static CUresult launch_exec(const struct graph_exec *exec, struct stream *stream)
{
    const struct exec_plan *plan = exec->owner;

    if (plan->behind)
        return launch_in_phases(exec, stream);
    return plan->phase_count > 0 ? send_segment(exec, plan->segments[0], stream) : CUDA_SUCCESS;
}

static CUresult launch_with_memory(const struct graph_exec *exec, struct stream *stream)
{
    CUresult result = graph_memory_check_launch_locked(exec);

    if (result == CUDA_SUCCESS)
        result = launch_exec(exec, stream);
    if (result == CUDA_SUCCESS)
        graph_memory_launched(exec);
    return result;
}

/* What its kernels have pointers into is about to be used. Nothing that the program holds waits for
 * the lock of graphs meanwhile. */
static void announce_kernels(const struct graph_exec *exec)
{
    const struct graph_kernel *kernel;

    if (!managed_any())
        return;
    for (unsigned at = 0; (kernel = next_kernel(exec, &at));)
        managed_launch(kernel->buffer, kernel->buffer_size);
}

CUresult client_cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream)
{
    struct stream *stream;
    CUresult result = stream_enter(hStream, &stream);

    if (result != CUDA_SUCCESS)
        return result;
    _cleanup_mutex_ pthread_mutex_t *lock = call_mutex_hold(&client_graph_lock);
    const struct graph_exec *exec = graph_exec_get(hGraphExec);

    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    if (capture_takes_exec_locked(stream, exec, &result))
        return result;
    announce_kernels(exec);
    return exec->has_memory ? launch_with_memory(exec, stream) : launch_exec(exec, stream);
}

/* ---- uploading ---- */

static CUresult upload_segment(uint64_t segment, struct stream *stream)
{
    const struct wire_cuGraphUpload in = {.graph = segment, .hStream = stream->handle};
    CUresult result;

    if (!segment)
        return CUDA_SUCCESS;
    stream_begin(stream);
    result = wire_cuGraphUpload(&client->channel, &in);
    stream_end();
    return result;
}

CUresult client_cuGraphUpload(CUgraphExec hGraph, CUstream hStream)
{
    struct stream *stream;
    CUresult result = stream_enter_uncaptured(hStream, &stream);

    if (result != CUDA_SUCCESS)
        return result;
    _cleanup_mutex_ pthread_mutex_t *lock = call_mutex_hold(&client_graph_lock);
    const struct graph_exec *exec = graph_exec_get(hGraph);

    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    const struct exec_plan *plan = exec->owner;
    for (uint32_t phase = 0; phase < plan->phase_count && result == CUDA_SUCCESS; phase++)
        result = upload_segment(plan->segments[phase], stream);
    return result;
}
