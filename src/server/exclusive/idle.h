/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Idle points. A context is idle when no stream of it has long work: work that is not done after
 * LONG_WORK_NS. The stream subsystem registers how to ask a session for its work.
 */
#pragma once

#include "exclusive.h"
#include "server.h"
#include "session.h"

#define LONG_WORK_NS (20 * NS_PER_MS)

/* How far the work of a session has come. Times are clock_ns(), or 0 = never. */
struct work_progress {
    uint64_t at;           /* some submission was found done */
    uint64_t long_step_at; /* the same in a stream whose submissions take LONG_WORK_NS or more */
    bool waits_in_flight;  /* the session has more work than may be in flight */
};

typedef void idle_visit(void *context, CUstream stream);

struct idle_source {
    /* On any thread, under the server's lock: calls `visit` for each stream of the session in the
     * device's context, which is current, that has work. The streams live meanwhile. */
    void (*visit_busy)(const struct session *session, const struct device *device,
                       idle_visit *visit, void *context);
    struct work_progress (*progress)(const struct session *session); /* the same */
    void (*poll)(struct session *session); /* on its thread: brings its progress up to date */
};

/* Before there are sessions. The source stays the caller's. */
void idle_register(struct server *server, const struct idle_source *source);

/* Whether exclusive calls wait for idle points. */
bool idle_is_awaited(const struct server *server);

/* Whether a stream of the context has long work, or another exclusive call takes as long. Runs on
 * the thread of `session`, whose own streams count like those of other clients. Takes little more
 * than twice LONG_WORK_NS at most. */
bool idle_has_long_work(struct session *session, const struct device *device);

/* On the thread of `session`: waits for an idle point of the context, and suspends other sessions
 * that always have long work. Gives up when the session is to end, and while a stream waits for its
 * client. */
void idle_await(struct session *session, const struct device *device, struct exclusive_call *call);

/* From any thread: whether a session waits for an idle point. */
static inline bool idle_has_waiters(const struct server *server)
{
    return atomic_load_explicit(&server->idle.waiters, memory_order_relaxed) != 0;
}

/* On any thread, around such a wait. */
void idle_waiter_begin(struct server *server);
void idle_waiter_end(struct server *server);
