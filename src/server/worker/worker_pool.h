/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A few worker threads that serve many sessions while the clients have more threads than there are
 * CPUs. A session has its own thread all the time: that thread attaches the client, makes the calls
 * that may take long, and ends the session. While CPUs are short it leaves the session to the pool
 * and sleeps. A worker polls the rings of its sessions in turn, and makes launches and fences
 * itself. It gives a session back with the first command that may block.
 *
 * One thread at a time serves a session:
 *
 *     session's thread ── worker_pool_serve() ──> worker ── returns ──> session's thread
 *
 * and what one wrote the other sees. Members of a session that are the session thread's are the
 * worker's in between.
 *
 * A worker gives a session back
 *   - with a command that it does not make itself,
 *   - when a stream of the session must wait for capacity, before the next command,
 *   - when the session is kicked, suspended, traced, given other limits, or to end,
 *   - when no command has come for some time: its thread then sleeps on the ring as usual,
 *   - when its worker has more sessions than its share, or the session is exempt,
 *   - when CPUs are not short any more.
 */
#pragma once

#include <stdbool.h>

#include "pool_size.h"
#include "session.h"

struct worker_pool;

struct pool_result {
    int size; /* of a command that the worker has taken, or the error of the ring; 0 = none */
    const struct ring_message *message;
    bool is_idle; /* no command has come for a while */
};

/* Starts as many workers as there may be; none = there is no pool: 0, -ENOMEM or -EAGAIN. There is
 * no end: the threads live as long as the process. */
int worker_pool_start(struct server *server, struct pool_size size);

struct pool_demand {
    bool wanted;  /* clients fill the CPUs */
    bool trains;  /* with trainings, most of all: trainings.h */
    bool gathers; /* and their launches are held until several are there: launch_batch.h */
    bool sleeps;  /* a worker without a command sleeps for a moment in place of polling */
};

/* The watchdog, with the server's lock. Tells the sessions when clients have begun to fill the
 * CPUs, and adapts the number of workers to their load. Nothing where the server has no pool. */
void worker_pool_update_locked(struct server *server, struct pool_demand demand);

/* The watchdog, with the server's lock: whether the session's own thread serves it all the time. */
void worker_pool_exempt_locked(struct session *session, bool exempt);

/* How many workers serve while CPUs are short; 0 = the server has no pool. */
unsigned worker_pool_active(const struct server *server);

/* From any thread: whether there is a pool and CPUs are short. */
bool worker_pool_is_wanted(const struct server *server);

/* Session thread: has the pool serve the session, and sleeps meanwhile. False, at once, when there
 * is no pool, when CPUs are not short, or when the session is exempt. */
bool worker_pool_serve(struct session *session, struct pool_result *ret_result);
