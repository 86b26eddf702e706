/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The heartbeats of servers. The log names a server that sends none, or in which clients keep
 * others waiting. The daemon kills the server when that lasts for the stall timeout. Its clients
 * then move to the next server; those that had work in flight get the error. One that is being
 * debugged is not killed for its silence.
 */
#pragma once

#include "daemon.h"
#include "server_protocol.h"

#define STALL_TIMEOUT_DEFAULT_S 300

struct heartbeat {
    struct event *timer; /* NULL before the server is ready */
    uint64_t heard;      /* clock_ns() of the last one */
    bool has_come;       /* one, ever */
    bool silence_logged, stall_logged;
    uint32_t waited_ms;      /* as it said last */
    bool has_long_work;      /* likewise */
    uint64_t long_work_seen; /* clock_ns() of the last one with long work, or of the first */
    uint64_t
        long_work_began; /* of the first of those that have said so without a break; 0 = none */
    char text[sizeof(((struct server_heartbeat *)NULL)->text)];
};

/* The server is ready: its heartbeats are expected from now on. */
void heartbeat_begin(struct server_process *server);
void heartbeat_end(struct server_process *server);

void heartbeat_received(struct server_process *server, const struct server_heartbeat *message);

/* For how long no heartbeat has come, in milliseconds; 0 while that is no longer than usual. */
uint32_t heartbeat_silent_ms(const struct server_process *server);

/* Whether its process stands still, by a signal or in a debugger. */
bool heartbeat_process_is_stopped(const struct server_process *server);

/* Whether the server cannot answer: it is stopped, or has sent heartbeats and sends none any more.
 */
bool heartbeat_is_stopped(const struct server_process *server);
