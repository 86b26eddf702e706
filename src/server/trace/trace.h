/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracing, on the daemon's order. For some seconds each session's thread runs its commands one by
 * one and records their times. Events before and behind a command give the time of its work on the
 * device. Without a trace this costs nothing: a session's thread notices a trace like a change of
 * its limits.
 */
#pragma once

#include "server_protocol.h"
#include "session.h"
#include "traced_command.h"

struct ring_message;
struct session_trace;
struct trace;

/* The main thread's: begins a trace into the file, which the caller keeps; false, without a write,
 * while another trace runs. */
bool server_trace_begin(struct server *server, const struct server_trace *order, int fd);

/* The main thread's: ends the trace of that number early, if it still runs. */
void server_trace_stop(struct server *server, uint32_t number);

/* The main thread's, periodically: ends a trace whose time is over. */
void server_trace_tick(struct server *server);

/* Whether a trace runs: for new sessions. */
bool server_is_traced(struct server *server);

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
