/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracing, on the daemon's order, for some seconds. Sessions notice a trace like a change of their
 * limits, so without one it costs nothing. They record their commands by trace.h.
 */
#pragma once

#include <stdatomic.h>

#include "server_protocol.h"
#include "trace_file.h"

struct server;

struct trace {
    struct trace_file file;
    atomic_uint_fast64_t end_ns; /* the main thread's to write */
    uint32_t number;             /* the daemon's, for this trace */
    int32_t pid;                 /* 0 = all clients */
    unsigned users; /* under the server's lock: the sessions, and the server until the end */
};

/* The main thread's: begins a trace into the file, which the caller keeps; false, without a write,
 * while another trace runs. */
bool server_trace_begin(struct server *server, const struct server_trace *order, int fd);

/* The main thread's: ends the trace of that number early, if it still runs. */
void server_trace_stop(struct server *server, uint32_t number);

/* The main thread's, periodically: ends a trace whose time is over. */
void server_trace_tick(struct server *server);

/* Whether a trace runs: for new sessions. */
bool server_is_traced(struct server *server);

/* For a session: the trace that runs, which server_trace_release() gives back, or NULL. The last
 * release closes the file. */
struct trace *server_trace_acquire(struct server *server);
void server_trace_release(struct server *server, struct trace *trace);

/* Whether its time is over, or the daemon has ended it. Takes no lock. */
bool server_trace_is_over(const struct trace *trace);
