/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace of one session: of the server (server_trace.h), or a profile of its own client. The
 * session's thread runs its commands one by one and records their times. Events before and behind a
 * command give the time of its work on the device.
 */
#pragma once

#include "session.h"
#include "traced_command.h"

struct ring_message;
struct session_trace;

/* The session's thread's, of a profiler's file if the client has given one, or of the server's
 * trace. NULL: there is none, or not of this client. */
struct session_trace *session_trace_begin(struct session *session);
bool session_trace_goes_on(const struct session_trace *trace);
void session_trace_end(struct session_trace *trace);

/* Around the execution of one command. */
void session_trace_before(struct session_trace *trace, const struct ring_message *message,
                          struct traced_command *ret_command);
void session_trace_after(struct session_trace *trace, const struct traced_command *command);

/* Records a range of the program: a message of fnRange. */
void session_trace_range(struct session_trace *trace, const struct ring_message *message);

/* A profiler's number of the call to which the commands from here on belong; 0 = none. */
void session_trace_correlate(struct session_trace *trace, uint32_t number);

/* Records device work that is done. The second waits up to half a second for the rest, and counts
 * what is not done then as lost. */
void session_trace_collect(struct session_trace *trace);
void session_trace_collect_last(struct session_trace *trace);
