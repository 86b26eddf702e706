/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A launch of a graph. Only its first and its last operation are in the stream; those of the nodes
 * are in none, and are held up by the first and by each other. All are made before any is begun, so
 * a launch that fails has done nothing.
 *
 * A launch waits for the last one of the same exec, as CUDA has it.
 */
#include "soft_graph_launch.h"

#include <stdlib.h>

#include "copy_prepare.h"
#include "graph_pool.h"
#include "launch_prepare.h"
#include "soft_context.h"
#include "stream_prepare.h"

static const struct operation_type mark_type = {0};

/* The operations of a node: the same one twice, but for a child graph, which is between them. */
struct steps {
    struct operation *first, *last;
};

static CUresult prepare_mark_locked(struct operation **ret_operation)
{
    struct operation *mark = operation_create(sizeof(*mark), &mark_type);

    if (!mark)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *ret_operation = mark;
    return CUDA_SUCCESS;
}

static CUresult prepare_copy_locked(const CUDA_MEMCPY3D *copy, struct operation **ret_operation)
{
    struct copy_request request = {.async = true};
    const struct cuda_box box = cuda_box_of_3d(copy);
    CUresult result = copy_request_fill(&box, &request);

    return result ? result : copy_prepare_locked(&request, ret_operation);
}

CUresult graph_prepare_locked(const struct graph_work *work, const struct stream *stream,
                              bool own_priority, struct operation **ret_operation)
{
    struct context *context = context_get(work->context);

    if (work->context && !context)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (work->type == CU_GRAPH_NODE_TYPE_KERNEL && context != stream->context)
        return CUDA_ERROR_NOT_SUPPORTED;
    switch (work->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return launch_prepare_locked(&work->kernel, context, stream, own_priority, ret_operation);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return prepare_copy_locked(&work->copy, ret_operation);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return fill_prepare_locked(&work->fill, ret_operation);
    case CU_GRAPH_NODE_TYPE_HOST:
        return host_function_prepare_locked(&work->host, ret_operation);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return mem_ops_prepare_locked(work->mem_ops.count, work->mem_ops.ops, ret_operation);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return event_prepare_locked(work->event, ret_operation);
    default:
        return prepare_mark_locked(ret_operation);
    }
}

static CUresult prepare_steps_locked(const struct graph_exec *exec, const struct graph_node *node,
                                     const struct stream *stream, struct steps *steps)
{
    bool own_priority = exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
    CUresult result = node->disabled
                          ? prepare_mark_locked(&steps->first)
                          : graph_prepare_locked(&node->work, stream, own_priority, &steps->first);

    if (result)
        return result;
    if (node->work.type == CU_GRAPH_NODE_TYPE_GRAPH)
        return prepare_mark_locked(&steps->last);
    steps->last = steps->first;
    operation_ref_locked(steps->last);
    return CUDA_SUCCESS;
}

static CUresult prepare_all_locked(const struct graph_exec *exec, const struct stream *stream,
                                   struct steps *steps)
{
    CUresult result = CUDA_SUCCESS;

    for (unsigned i = 0; !result && i < exec->count; i++)
        result = prepare_steps_locked(exec, exec->nodes[i], stream, &steps[i]);
    return result;
}

static void drop_all_locked(const struct graph_exec *exec, struct steps *steps)
{
    for (unsigned i = 0; i < exec->count; i++) {
        operation_unref_locked(steps[i].first);
        operation_unref_locked(steps[i].last);
    }
}

static void begin_locked(const struct graph_node *node, struct stream *stream, struct steps *steps)
{
    struct operation *first = steps[node->index].first;

    for (unsigned i = 0; i < node->dependencies.count; i++)
        operation_depend_locked(first, steps[node->dependencies.edges[i].node->index].last);
    if (node->graph->in)
        operation_depend_locked(first, steps[node->graph->in->index].first);
    if (node->work.type == CU_GRAPH_NODE_TYPE_WAIT_EVENT)
        event_awaited_locked(node->work.event, first);
    if (node->work.type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
        event_recorded_locked(node->work.event, first);
    schedule_begin_locked(stream->context, first);
}

/* What is behind a child graph already waits for this. */
static void end_child_locked(const struct graph_node *node, struct stream *stream,
                             struct steps *steps)
{
    struct operation *last = steps[node->index].last;

    operation_depend_locked(last, steps[node->index].first);
    list_for_each (struct graph_node, inner, &node->work.child->nodes, in_graph)
        operation_depend_locked(last, steps[inner->index].last);
    schedule_begin_locked(stream->context, last);
}

static void end_all_locked(const struct graph_exec *exec, struct stream *stream,
                           struct steps *steps, struct operation *tail)
{
    for (unsigned i = 0; i < exec->count; i++) {
        const struct graph_node *node = exec->nodes[i];

        if (node->work.type == CU_GRAPH_NODE_TYPE_GRAPH)
            end_child_locked(node, stream, steps);
        operation_depend_locked(tail, steps[i].last);
    }
}

/* The last operation is held until it is in the stream, for the nodes may all be done by then. */
static void submit_locked(struct graph_exec *exec, struct stream *stream, struct steps *steps,
                          struct operation *head, struct operation *tail)
{
    operation_depend_locked(head, exec->owner);
    schedule_enqueue_locked(stream, head);
    operation_hold_locked(tail);
    for (unsigned i = 0; i < exec->count; i++) {
        if (exec->nodes[i]->dependencies.count == 0)
            operation_depend_locked(steps[i].first, head);
        begin_locked(exec->nodes[i], stream, steps);
    }
    end_all_locked(exec, stream, steps, tail);
    schedule_enqueue_locked(stream, tail);
    operation_release_locked(tail);
    operation_unref_locked(exec->owner);
    operation_ref_locked(tail);
    exec->owner = tail;
}

static void use_memory_locked(const struct graph_exec *exec)
{
    for (unsigned i = 0; i < exec->count; i++) {
        struct graph_memory *memory = graph_exec_memory(exec, i);

        if (memory)
            graph_memory_behind_locked(memory, exec->owner);
    }
    graph_memory_launched_locked(exec);
}

static CUresult launch_locked(struct graph_exec *exec, struct stream *stream)
{
    _cleanup_free_ struct steps *steps = calloc(exec->count + 1, sizeof(*steps));
    struct operation *head = NULL, *tail = NULL;
    CUresult result = steps ? prepare_mark_locked(&head) : CUDA_ERROR_OUT_OF_MEMORY;

    if (!result)
        result = prepare_mark_locked(&tail);
    if (!result)
        result = prepare_all_locked(exec, stream, steps);
    if (!result && exec->has_memory)
        result = graph_memory_check_launch_locked(exec);
    if (!result)
        submit_locked(exec, stream, steps, head, tail);
    if (!result && exec->has_memory)
        use_memory_locked(exec);
    if (steps)
        drop_all_locked(exec, steps);
    operation_unref_locked(head);
    operation_unref_locked(tail);
    return result;
}

CUresult soft_cuGraphLaunch(CUgraphExec hGraph, CUstream hStream)
{
    struct stream *stream;
    SOFT_LOCKED;
    CUresult result = launch_stream_locked(hStream, &stream);

    if (result)
        return result;
    struct graph_exec *exec = graph_exec_get(hGraph);

    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    return capture_is_on(&stream->capture) ? capture_exec_locked(&stream->capture, exec)
                                           : launch_locked(exec, stream);
}

/* There is no device memory to be filled. */
CUresult soft_cuGraphUpload(CUgraphExec hGraph, CUstream hStream)
{
    struct stream *stream;
    SOFT_LOCKED;
    CUresult result = stream_use_locked(hStream, &stream);

    if (result)
        return result;
    return graph_exec_get(hGraph) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult graph_exec_create_locked(struct graph_exec *exec)
{
    exec->owner = NULL;
    return CUDA_SUCCESS;
}

/* What was launched goes on. */
void graph_exec_destroy_locked(struct graph_exec *exec)
{
    operation_unref_locked(exec->owner);
}

void graph_later_locked(const struct graph_exec *after, CUhostFn function, void *user)
{
    host_function_later_locked(after ? after->owner : NULL, function, user);
}

/* Operations are made when the graph is launched, of what its nodes say then. */
CUresult graph_exec_set_locked(struct graph_exec *exec, struct graph_node *node)
{
    return CUDA_SUCCESS;
}
