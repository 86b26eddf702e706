/* SPDX-License-Identifier: Apache-2.0 */
/* What a trace says of a command: which work on the device it makes, and where. */
#pragma once

#include "session.h"

struct graph_node_work;
struct ring_message;
struct stream;

/* A command that is being traced. */
struct traced_command {
    uint64_t begin_ns;
    uint64_t recorded_ns; /* when the driver had got the event before the work */
    uint32_t op;
    struct stream *stream; /* NULL: no work on the device, or not timed */
    CUevent before;
    bool was_idle; /* nothing of the stream ran when that event was recorded: of copies */
    unsigned kind; /* enum trace_kind of that work */
    uint64_t bytes;
    uint64_t to, from, stream_handle, object_handle;
    uint32_t shared_bytes, value;
    uint32_t grid[3], block[3];
    uint32_t in_graph, node; /* as in struct trace_record */
    char name[128];
};

/* Describes the device work of the command, before it runs. `command` has its number, and the rest
 * is 0. */
void traced_command_describe(struct session *session, const struct ring_message *message,
                             struct traced_command *command);

/* Describes a node's work, apart from its stream. */
void traced_command_describe_node(const struct graph_node_work *work,
                                  struct traced_command *ret_command);
