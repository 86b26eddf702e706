/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker's loop. When a command gets here, it has been copied out of shared memory; the
 * generated dispatcher checks its bounds, looks its handles up and calls serve_*().
 */
#include "worker.h"

#include <string.h>

#include "clock.h"
#include "launch_batch.h"
#include "log.h"
#include "server_dispatch.h"
#include "session_life.h"
#include "stream.h"
#include "trace.h"

/* A worker checks for its end itself; the timeout covers lost wakes. */
#define IDLE_WAIT_NS 500000000ull

static void end_client(struct session *session, const char *what,
                       const struct ring_message *message)
{
    const char *name = message ? wire_op_name(channel_kind_op(message->kind)) : NULL;

    session_log_error(session, "%s (%s), ending this client", what, name ? name : "no command");
    session->life->distrusted = true;
    session_fail(session, CUDA_ERROR_MPS_CLIENT_TERMINATED);
    session_stop(session, CUDA_ERROR_MPS_CLIENT_TERMINATED);
}

/* These commands submit the pending launch batch themselves. */
static bool handles_batch_itself(uint32_t op)
{
    return op == WIRE_cuLaunchKernelEx || op == WIRE_fnFence;
}

/* `size` is that of the message, or the error of the ring. */
static inline void run_message(struct session *session, int size,
                               const struct ring_message *message)
{
    if (size < 0 || !handles_batch_itself(channel_kind_op(message->kind)))
        launch_batch_flush(session);
    session->since_error++;
    if (size < 0)
        end_client(session, "the ring is corrupt", NULL);
    else if (!server_dispatch(session, message))
        end_client(session, "malformed command", message);
}

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
        !streams_are_suspended(session))
        return;
    launch_batch_flush(session);
    streams_await_resume(session);
}

/* Like run_one(), but without launch batches: each launch is timed separately. */
static bool run_one_traced(struct session *session, struct session_trace *trace)
{
    const struct ring_message *message = NULL;
    int size = channel_server_next(session->channel, &message);
    struct traced_command command;
    bool listed = size > 0 && channel_kind_op(message->kind) != WIRE_fnRange;

    if (size == 0)
        return false;
    if (listed)
        session_trace_before(trace, message, &command);
    else if (size > 0)
        session_trace_range(trace, message);
    run_message(session, size, message);
    launch_batch_flush(session);
    if (listed)
        session_trace_after(trace, &command);
    return true;
}

static bool take_change(struct session *session)
{
    if (!atomic_exchange(&session->limits.changed, false))
        return false;
    launch_batch_flush(session);
    streams_follow_limits(session);
    return true;
}

/* Runs commands while a trace runs. */
static void run_traced(struct session *session)
{
    struct session_trace *trace = session_trace_begin(session);

    while (trace && !session->stop && session_trace_goes_on(trace)) {
        take_change(session);
        stay_suspended(session);
        if (run_one_traced(session, trace))
            continue;
        session_trace_collect(trace);
        wait_for_command(session);
    }
    if (trace)
        session_trace_end(trace);
}

/* A trace also begins as a change of the limits, so that the loop checks nothing else. */
static void follow_limits(struct session *session)
{
    if (atomic_load_explicit(&session->limits.changed, memory_order_relaxed) &&
        take_change(session))
        run_traced(session);
}

void worker_run(struct session *session)
{
    if (server_is_traced(session->server))
        atomic_store(&session->limits.changed, true);
    while (!session->stop) {
        follow_limits(session);
        stay_suspended(session);
        if (!run_one(session))
            wait_for_command(session);
    }
    launch_batch_flush(session);
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
