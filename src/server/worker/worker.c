/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker's loop. When a command gets here, it has been copied out of shared memory. The
 * generated dispatcher checks its bounds, looks its handles up and calls serve_*().
 */
#include "worker.h"

#include <string.h>

#include "channel_server.h"
#include "driver_stream.h"
#include "lending.h"
#include "profile.h"
#include "program_suspend.h"
#include "run_message.h"
#include "server_trace.h"
#include "session_leave.h"
#include "session_life.h"
#include "stream.h"
#include "suspend.h"
#include "trace.h"
#include "worker_pool.h"

/* A worker checks for its end itself; the timeout covers lost wakes. */
#define IDLE_WAIT_NS 500000000ull

/* Runs one command; false when there is none. */
static bool run_one(struct session *session)
{
    const struct ring_message *message = NULL;
    int size = channel_server_next(session->channel, &message);

    if (size == 0)
        return launch_batch_awaits_fence(session) || launch_batch_flush(session);
    run_message(session, size, message);
    return true;
}

static void wait_for_command(struct session *session)
{
    session_set_at_rest(session, true);
    channel_server_wait(session->channel, IDLE_WAIT_NS);
    session_set_at_rest(session, false);
}

/* Another session may be about to make an exclusive call. */
static void stay_suspended(struct session *session)
{
    if (!atomic_load_explicit(&session->suspended.count, memory_order_relaxed) ||
        !session_is_suspended(session))
        return;
    launch_batch_flush(session);
    suspend_await_end(session);
}

/* Commands for the trace itself are no part of it. */
static bool is_listed(uint32_t op)
{
    return op != WIRE_fnRange && op != WIRE_fnCorrelation && op != WIRE_fnProfile;
}

/* Like run_one(), but without launch batches: each launch is timed separately. */
static bool run_one_traced(struct session *session, struct session_trace *trace)
{
    const struct ring_message *message = NULL;
    int size = channel_server_next(session->channel, &message);
    struct traced_command command;
    bool listed = size > 0 && is_listed(channel_kind_op(message->kind));

    if (size == 0)
        return false;
    if (listed)
        session_trace_before(trace, message, &command);
    else if (size > 0 && channel_kind_op(message->kind) == WIRE_fnRange)
        session_trace_range(trace, message);
    run_message(session, size, message);
    launch_batch_flush(session);
    if (listed)
        session_trace_after(trace, &command);
    return true;
}

static bool take_change(struct session *session)
{
    unsigned changed = atomic_exchange(&session->limits.changed, 0);

    if (!changed)
        return false;
    launch_batch_flush(session);
    if (changed & CHANGED_LIMITS)
        streams_follow_limits(session);
    if (changed & CHANGED_LENDING)
        lending_follow(session);
    if (changed & CHANGED_LEAVE)
        session_leave_follow(session);
    if (changed & CHANGED_SUSPEND)
        program_suspend_follow(session);
    return true;
}

/* Runs commands while a trace runs. */
static void run_traced(struct session *session)
{
    struct session_trace *trace = session_trace_begin(session);

    while (trace && !session->stop && session_trace_goes_on(trace)) {
        if (take_change(session) && session->stop)
            break;
        stay_suspended(session);
        if (run_one_traced(session, trace))
            continue;
        session_trace_collect(trace);
        wait_for_command(session);
    }
    if (trace)
        session_trace_end(trace);
}

static void run_until_idle_once(struct session *session)
{
    if (!run_one(session))
        wait_for_command(session);
}

/* Goes on where the pool has left off. */
static void run_after_pool(struct session *session, const struct pool_result *result)
{
    streams_await_capacity(session);
    stay_suspended(session);
    if (result->size)
        run_message(session, result->size, result->message);
    else if (result->is_idle)
        run_until_idle_once(session);
}

static bool has_changed(const struct session *session)
{
    return atomic_load_explicit(&session->limits.changed, memory_order_relaxed);
}

/* Leaves the session to the pool while that is wanted. */
static void run_pooled(struct session *session)
{
    struct pool_result result;

    while (!session->stop && !has_changed(session) && worker_pool_serve(session, &result))
        run_after_pool(session, &result);
}

/* A trace begins in this way, too, so that the loop checks nothing else. A command of the pool may
 * be such a change, before the next command. The caller reads `stop` before it takes that: those in
 * the ring may have gone with the client. */
static void follow_limits(struct session *session)
{
    while (has_changed(session) && !session->stop && take_change(session)) {
        run_traced(session);
        run_pooled(session);
    }
}

void worker_run(struct session *session)
{
    if (server_is_traced(session->server))
        atomic_fetch_or(&session->limits.changed, CHANGED_LIMITS);
    if (worker_pool_is_wanted(session->server))
        atomic_fetch_or(&session->limits.changed, CHANGED_SERVICE);
    /* Only one wait may follow a kick, so `stop` is read before the next. */
    follow_limits(session);
    while (!session->stop) {
        stay_suspended(session);
        run_until_idle_once(session);
        follow_limits(session);
    }
    launch_batch_flush(session);
    session_profile_close(session, session->life->profile);
}

CUresult serve_fnReason(struct session *session, const struct wire_fnReason *in,
                        struct wire_fnReason_reply *ret_out)
{
    size_t size = session->since_error <= in->within ? strlen(session->reason) : 0;

    memcpy(ret_out->text, session->reason, size);
    ret_out->text_size = (uint32_t)size;
    *session->reason = '\0';
    return CUDA_SUCCESS;
}

/* Partner: run_one_traced(). */
CUresult serve_fnRange(struct session *session, const struct wire_fnRange *in)
{
    return CUDA_SUCCESS;
}

CUresult serve_fnNote(struct session *session, const struct wire_fnNote *in)
{
    char text[513];
    uint32_t size = in->text_size < sizeof(text) ? in->text_size : (uint32_t)sizeof(text) - 1;

    for (uint32_t i = 0; i < size; i++) {
        char c = ((const char *)in->text)[i];
        text[i] = c < ' ' || c > '~' ? '?' : c;
    }
    text[size] = '\0';
    session_log_error(session, "%s", text);
    return CUDA_SUCCESS;
}
