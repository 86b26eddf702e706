/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A launch of a graph. Only its first and its last operation are in the stream. Those of the nodes
 * are in no stream, and wait for the first and for each other. All are made before any begins, so a
 * launch that fails has no effect.
 *
 * A launch waits for the last one of the same exec, as CUDA has it.
 */
#include "soft_graph_launch.h"

#include <stdlib.h>

#include "copy_prepare.h"
#include "device_sync.h"
#include "graph_branch.h"
#include "graph_condition.h"
#include "graph_pool.h"
#include "host_function_calls.h"
#include "launch_calls.h"
#include "launch_prepare.h"
#include "soft_context.h"
#include "soft_event.h"
#include "stream_prepare.h"
#include "switch.h"

static const struct operation_type mark_type = {0};

/* The first operation of a launch: the values of conditional nodes begin with it. */
struct head {
    struct operation operation;
    struct operation *tail; /* of one with conditional nodes: the end of its launch */
    unsigned count;
    struct graph_condition *conditions[];
};

/* The launch with conditional nodes that began last. */
static struct operation *deciding;

static bool decides_now_locked(const struct context *context)
{
    return deciding && deciding->context == context && deciding->state != OPERATION_FINISHED;
}

/* A GPU cannot run two of these in one context. */
static void check_turn_locked(const struct head *head)
{
    struct context *context = head->operation.context;

    if (!head->tail || !switch_is_on("FUNNEL_SOFT_STRICT_GRAPHS"))
        return;
    if (decides_now_locked(context))
        context_fail_locked(context, CUDA_ERROR_LAUNCH_FAILED,
                            "two graphs with conditional nodes ran side by side");
    operation_unref_locked(deciding);
    operation_ref_locked(head->tail);
    deciding = head->tail;
}

static bool head_start_locked(struct operation *operation)
{
    const struct head *head = (const struct head *)operation;

    check_turn_locked(head);
    for (unsigned i = 0; i < head->count; i++)
        graph_condition_begin_locked(head->conditions[i]);
    return true;
}

static void head_fini(struct operation *operation)
{
    const struct head *head = (const struct head *)operation;

    operation_unref_locked(head->tail);
    for (unsigned i = 0; i < head->count; i++)
        graph_condition_unref(head->conditions[i]);
}

static const struct operation_type head_type = {.start_locked = head_start_locked,
                                                .fini = head_fini};

static struct node_list list_of(const struct graph_exec *exec)
{
    return (struct node_list){.nodes = exec->nodes,
                              .count = exec->count,
                              .own_priority =
                                  exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY};
}

static bool decides(const struct graph_node *node)
{
    return node->work.type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
}

static CUresult prepare_head_locked(const struct graph_exec *exec, struct operation *tail,
                                    struct operation **ret_head)
{
    unsigned count = 0;
    struct head *head;

    for (unsigned i = 0; i < exec->count; i++)
        count += decides(exec->nodes[i]);
    head = operation_create(sizeof(*head) + count * sizeof(struct graph_condition *), &head_type);
    if (!head)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned i = 0; i < exec->count; i++) {
        if (!decides(exec->nodes[i]))
            continue;
        head->conditions[head->count++] = exec->nodes[i]->work.conditional.condition;
        graph_condition_ref(exec->nodes[i]->work.conditional.condition);
    }
    if (count) {
        operation_ref_locked(tail);
        head->tail = tail;
    }
    *ret_head = &head->operation;
    return CUDA_SUCCESS;
}

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

static CUresult prepare_node_locked(const struct node_list *list, const struct graph_node *node,
                                    const struct stream *stream, struct operation **ret_operation)
{
    if (node->disabled)
        return prepare_mark_locked(ret_operation);
    if (decides(node))
        return branch_prepare_locked(&node->work, stream, list->own_priority, ret_operation);
    return graph_prepare_locked(&node->work, stream, list->own_priority, ret_operation);
}

static CUresult prepare_steps_locked(const struct node_list *list, const struct graph_node *node,
                                     const struct stream *stream, struct steps *steps)
{
    CUresult result = prepare_node_locked(list, node, stream, &steps->first);

    if (result)
        return result;
    if (node->work.type == CU_GRAPH_NODE_TYPE_GRAPH)
        return prepare_mark_locked(&steps->last);
    steps->last = steps->first;
    operation_ref_locked(steps->last);
    return CUDA_SUCCESS;
}

/* The body of a conditional node is prepared when the node has chosen it. */
CUresult steps_prepare_locked(const struct node_list *list, const struct stream *stream,
                              struct steps **ret_steps)
{
    struct steps *steps = calloc(list->count + 1, sizeof(*steps));
    CUresult result = steps ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

    for (unsigned i = 0; !result && i < list->count; i++) {
        if (!list->nodes[i]->in_body)
            result = prepare_steps_locked(list, list->nodes[i], stream, &steps[i]);
    }
    if (result)
        steps_drop_locked(list, steps);
    else
        *ret_steps = steps;
    return result;
}

void steps_drop_locked(const struct node_list *list, struct steps *steps)
{
    for (unsigned i = 0; steps && i < list->count; i++) {
        operation_unref_locked(steps[i].first);
        operation_unref_locked(steps[i].last);
    }
    free(steps);
}

static void begin_locked(const struct graph_node *node, struct context *context,
                         struct steps *steps, struct operation *head)
{
    struct operation *first = steps[node->index].first;

    if (node->dependencies.count == 0)
        operation_depend_locked(first, head);
    for (unsigned i = 0; i < node->dependencies.count; i++)
        operation_depend_locked(first, steps[node->dependencies.edges[i].node->index].last);
    if (node->graph->in)
        operation_depend_locked(first, steps[node->graph->in->index].first);
    if (node->work.type == CU_GRAPH_NODE_TYPE_WAIT_EVENT)
        event_awaited_locked(node->work.event, first);
    if (node->work.type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
        event_recorded_locked(node->work.event, first);
    schedule_begin_locked(context, first);
}

/* The nodes behind a child graph already wait for this. */
static void end_child_locked(const struct graph_node *node, struct context *context,
                             struct steps *steps)
{
    struct operation *last = steps[node->index].last;

    operation_depend_locked(last, steps[node->index].first);
    list_for_each (struct graph_node, inner, &node->work.child->nodes, in_graph)
        operation_depend_locked(last, steps[inner->index].last);
    schedule_begin_locked(context, last);
}

void steps_begin_locked(const struct node_list *list, struct context *context, struct steps *steps,
                        struct operation *head, struct operation *tail)
{
    for (unsigned i = 0; i < list->count; i++) {
        if (!list->nodes[i]->in_body)
            begin_locked(list->nodes[i], context, steps, head);
    }
    for (unsigned i = 0; i < list->count; i++) {
        const struct graph_node *node = list->nodes[i];

        if (node->in_body)
            continue;
        if (node->work.type == CU_GRAPH_NODE_TYPE_GRAPH)
            end_child_locked(node, context, steps);
        operation_depend_locked(tail, steps[i].last);
    }
}

/* The last operation is held until it is in the stream, for the nodes may all be done by then. */
static void submit_locked(struct graph_exec *exec, struct stream *stream, struct steps *steps,
                          struct operation *head, struct operation *tail)
{
    const struct node_list list = list_of(exec);

    operation_depend_locked(head, exec->owner);
    schedule_enqueue_locked(stream, head);
    operation_hold_locked(tail);
    steps_begin_locked(&list, stream->context, steps, head, tail);
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
    const struct node_list list = list_of(exec);
    struct operation *head = NULL, *tail = NULL;
    struct steps *steps = NULL;
    CUresult result = prepare_mark_locked(&tail);

    if (!result)
        result = prepare_head_locked(exec, tail, &head);
    if (!result)
        result = steps_prepare_locked(&list, stream, &steps);
    if (!result && exec->has_memory)
        result = graph_memory_check_launch_locked(exec);
    if (!result)
        submit_locked(exec, stream, steps, head, tail);
    if (!result && exec->has_memory)
        use_memory_locked(exec);
    steps_drop_locked(&list, steps);
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
    struct context *context;

    exec->owner = NULL;
    if (context_current_locked(&context) == CUDA_SUCCESS)
        device_block_take_locked(context);
    return CUDA_SUCCESS;
}

static bool decides_somewhere(const struct graph_exec *exec)
{
    for (unsigned i = 0; i < exec->count; i++)
        if (decides(exec->nodes[i]))
            return true;
    return false;
}

static void give_block_locked(const struct graph_exec *exec)
{
    struct context *context;

    if (context_current_locked(&context) != CUDA_SUCCESS)
        return;
    device_block_give_locked(context);
    if (decides_somewhere(exec))
        device_sync_emulate_locked(context);
}

/* Launched work goes on. A GPU could reuse the value of a conditional node for another graph
 * meanwhile, so a switch makes an unfinished launch an error. */
static void check_end_locked(const struct graph_exec *exec)
{
    const struct operation *last = exec->owner;
    bool runs = last && last->state != OPERATION_FINISHED;

    if (runs && decides_somewhere(exec) && switch_is_on("FUNNEL_SOFT_STRICT_GRAPHS"))
        context_fail_locked(last->context, CUDA_ERROR_LAUNCH_FAILED,
                            "a graph with conditional nodes was destroyed while it was running");
}

void graph_exec_destroy_locked(struct graph_exec *exec)
{
    check_end_locked(exec);
    give_block_locked(exec);
    operation_unref_locked(exec->owner);
}

void graph_later_locked(const struct graph_exec *after, CUhostFn function, void *user)
{
    host_function_later_locked(after ? after->owner : NULL, function, user);
}

/* Nor does a GPU bear that nodes are set while one of these runs. */
static void check_set_locked(const struct graph_exec *exec)
{
    const struct operation *last = exec->owner;

    if (last && decides_now_locked(last->context) && switch_is_on("FUNNEL_SOFT_STRICT_GRAPHS"))
        context_fail_locked(last->context, CUDA_ERROR_LAUNCH_FAILED,
                            "a node of a graph was set while one with conditional nodes ran");
}

/* Operations are made when the graph is launched, of what its nodes say then. */
CUresult graph_exec_set_locked(struct graph_exec *exec, struct graph_node *node)
{
    check_set_locked(exec);
    return CUDA_SUCCESS;
}
