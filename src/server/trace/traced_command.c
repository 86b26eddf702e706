/* SPDX-License-Identifier: Apache-2.0 */
/* See traced_command.h. */
#include "traced_command.h"

#include <string.h>

#include "channel.h"
#include "copy_batch.h"
#include "function.h"
#include "graph.h"
#include "text.h"
#include "trace_format.h"

static void describe_stream(struct session *session, uint64_t handle,
                            struct traced_command *command)
{
    command->stream = session_lookup(session, WIRE_STREAM, handle);
    command->stream_handle = handle;
}

static void describe_kernel(struct session *session, const struct ring_message *message,
                            struct traced_command *command)
{
    struct wire_cuLaunchKernelEx in;
    const struct function *function;

    if (!decode_cuLaunchKernelEx(message, message->size, &in))
        return;
    function = session_lookup(session, WIRE_FUNCTION, in.f);
    if (!function)
        return;
    describe_stream(session, in.hStream, command);
    command->kind = TRACE_KERNEL;
    command->object_handle = in.f;
    command->shared_bytes = in.shape[6];
    memcpy(command->grid, in.shape, sizeof(command->grid));
    memcpy(command->block, in.shape + 3, sizeof(command->block));
    text_copy(command->name, sizeof(command->name), function->name);
}

static void describe_graph(struct session *session, const struct ring_message *message,
                           struct traced_command *command)
{
    struct wire_cuGraphLaunch in;

    if (!decode_cuGraphLaunch(message, message->size, &in))
        return;
    describe_stream(session, in.hStream, command);
    command->kind = TRACE_GRAPH;
    command->object_handle = in.graph;
    text_copy(command->name, sizeof(command->name), "graph");
}

static void describe_memset(struct session *session, const struct ring_message *message,
                            struct traced_command *command)
{
    struct wire_fnMemset in;

    if (!decode_fnMemset(message, message->size, &in))
        return;
    describe_stream(session, in.hStream, command);
    command->kind = TRACE_MEMSET;
    command->to = in.dst;
    command->value = in.value;
    command->bytes = in.width * in.height * in.element_size;
    text_copy(command->name, sizeof(command->name), "memset");
}

static void describe_copy(struct session *session, uint64_t stream, uint64_t to, uint64_t from,
                          uint64_t bytes, struct traced_command *command)
{
    describe_stream(session, stream, command);
    command->kind = TRACE_COPY;
    command->to = to;
    command->from = from;
    command->bytes = bytes;
    text_copy(command->name, sizeof(command->name), "copy");
}

void traced_command_describe(struct session *session, const struct ring_message *message,
                             struct traced_command *command)
{
    struct wire_cuMemcpyAsync copy;
    struct wire_cuMemcpyHtoDAsync_v2 small;
    struct wire_cuMemcpy3DAsync_v2 box;
    struct wire_fnCopyUp up;
    struct wire_fnCopyBatch batch;

    if (command->op == WIRE_cuLaunchKernelEx)
        describe_kernel(session, message, command);
    else if (command->op == WIRE_cuGraphLaunch)
        describe_graph(session, message, command);
    else if (command->op == WIRE_fnMemset)
        describe_memset(session, message, command);
    else if (command->op == WIRE_cuMemcpyAsync &&
             decode_cuMemcpyAsync(message, message->size, &copy))
        describe_copy(session, copy.hStream, copy.dst, copy.src, copy.ByteCount, command);
    else if (command->op == WIRE_cuMemcpyHtoDAsync_v2 &&
             decode_cuMemcpyHtoDAsync_v2(message, message->size, &small))
        describe_copy(session, small.hStream, small.dstDevice, 0, small.data_size, command);
    else if (command->op == WIRE_cuMemcpy3DAsync_v2 &&
             decode_cuMemcpy3DAsync_v2(message, message->size, &box))
        describe_copy(session, box.hStream, box.dst, box.src, box.width * box.height * box.depth,
                      command);
    else if (command->op == WIRE_fnCopyUp && decode_fnCopyUp(message, message->size, &up))
        describe_copy(session, up.hStream, up.dst, up.src, up.ByteCount, command);
    else if (command->op == WIRE_fnCopyBatch && decode_fnCopyBatch(message, message->size, &batch))
        describe_copy(session, batch.hStream, 0, 0, copy_batch_bytes(&batch), command);
}

void traced_command_describe_node(const struct graph_node_work *work,
                                  struct traced_command *ret_command)
{
    static const char *const names[] = {[TRACE_COPY] = "copy", [TRACE_MEMSET] = "memset"};

    *ret_command = (struct traced_command){.kind = work->kind,
                                           .to = work->to,
                                           .from = work->from,
                                           .bytes = work->bytes,
                                           .value = work->value,
                                           .shared_bytes = work->shared_bytes,
                                           .in_graph = (uint32_t)work->graph,
                                           .node = work->node + 1};
    memcpy(ret_command->grid, work->grid, sizeof(work->grid));
    memcpy(ret_command->block, work->block, sizeof(work->block));
    if (work->function)
        ret_command->object_handle = work->function->handle;
    text_copy(ret_command->name, sizeof(ret_command->name),
              work->function ? work->function->name : names[work->kind]);
}
