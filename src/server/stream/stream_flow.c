/* SPDX-License-Identifier: Apache-2.0 */
/* See stream_flow.h. */
#include "stream_flow.h"

#include <time.h>

#include "cleanup.h"
#include "idle.h"
#include "sm_share.h"
#include "stream_state.h"
#include "suspend.h"

void stream_flow_init(struct stream *stream)
{
    flow_control_init(&stream->flow.control, stream->session->server->streams->no_flow_control);
}

void stream_flow_end(struct stream *stream)
{
    for (unsigned i = 0; i < FLOW_CHECKPOINTS_MAX; i++) {
        CUevent event = steal_pointer(stream->flow.checkpoints[i].event);

        if (event)
            driver.cuEventDestroy_v2(event);
    }
    stream->flow.count = 0;
}

/* ---- checkpoints ---- */

/* Where there are too many, the last one moves behind the new submissions. Where there is none, the
 * first place is taken, so that a stream has few events. */
static void add_checkpoint(struct stream_flow *flow, CUstream stream, int32_t submissions)
{
    if (!flow->count)
        flow->first = 0;
    bool moves = flow->count == FLOW_CHECKPOINTS_MAX;
    struct flow_checkpoint *last =
        &flow->checkpoints[(flow->first + flow->count - moves) % FLOW_CHECKPOINTS_MAX];

    if (!last->event && driver.cuEventCreate(&last->event, CU_EVENT_DISABLE_TIMING))
        return;
    last->submissions = moves ? last->submissions + submissions : submissions;
    flow->count += !moves;
    flow->control.in_flight += submissions;
    driver.cuEventRecord(last->event, stream);
}

/* Drops the checkpoints that the stream has reached. Returns how many submissions were before them.
 */
static int32_t drop_reached(struct stream_flow *flow)
{
    int32_t done = 0;

    while (flow->count &&
           driver.cuEventQuery(flow->checkpoints[flow->first].event) != CUDA_ERROR_NOT_READY) {
        done += flow->checkpoints[flow->first].submissions;
        flow->first = (flow->first + 1) % FLOW_CHECKPOINTS_MAX;
        flow->count--;
    }
    return done;
}

/* ---- polls ---- */

static enum flow_rule rule_of(const struct stream *stream)
{
    if (stream->session->streams->has_host_waits)
        return FLOW_BY_COUNT;
    return stream->sm_share->streams == 1 || stream->is_away ||
                   idle_has_waiters(stream->session->server)
               ? FLOW_BY_LIMIT
               : FLOW_BY_BURST;
}

/* Returns how long to pause until the next poll; 0 = the stream may be given more. */
static uint64_t poll_stream(struct stream *stream, struct flow_poll *poll)
{
    struct session_streams *streams = stream->session->streams;
    struct stream_flow *flow = &stream->flow;

    poll->now = clock_ns();
    poll->done = drop_reached(flow);
    poll->awaited = flow->count ? flow->checkpoints[flow->first].submissions : 0;
    poll->rule = rule_of(stream);
    uint64_t pause = flow_control_poll(&flow->control, poll);
    if (!poll->done)
        return pause;
    /* Partners: streams_progress(), and makes_progress() in long_work_watch.c. */
    atomic_store_explicit(&flow->progressed_at, poll->now, memory_order_relaxed);
    atomic_store_explicit(&streams->progressed_at, poll->now, memory_order_relaxed);
    if (flow->control.submission_ns >= LONG_WORK_NS)
        atomic_store_explicit(&streams->long_step_at, poll->now, memory_order_relaxed);
    return pause;
}

/* The thread keeps its context. */
void streams_poll(struct session *session)
{
    const struct device *current = session->current;

    for (unsigned i = 0; i < session->server->devices.count; i++) {
        list_for_each (struct stream, stream, &session->streams->of_device[i], link) {
            struct flow_poll poll = {0};

            if (stream->flow.count && session_enter(session, stream->device) == CUDA_SUCCESS)
                poll_stream(stream, &poll);
        }
    }
    if (current)
        session_visit(session, current);
}

struct work_progress streams_progress(const struct session *session)
{
    const struct session_streams *streams = session->streams;

    return (struct work_progress){
        .at = atomic_load_explicit(&streams->progressed_at, memory_order_relaxed),
        .long_step_at = atomic_load_explicit(&streams->long_step_at, memory_order_relaxed),
        .waits_in_flight = atomic_load_explicit(&streams->waits_in_flight, memory_order_relaxed),
    };
}

/* ---- steps ---- */

/* Puts a checkpoint behind what the stream was given since the last step. */
static void take_submissions(struct stream *stream, struct flow_poll *poll)
{
    struct session_streams *streams = stream->session->streams;

    if (poll->is_idle)
        stream->flow.count = 0;
    else
        add_checkpoint(&stream->flow, stream->driver, poll->given);
    poll->is_new_burst = streams->given_last != stream->word;
    streams->given_last = stream->word;
}

/* A worker of the pool never waits: the session's thread does it before the next command. */
static void await_capacity(struct stream *stream, struct flow_poll *poll)
{
    struct session *session = stream->session;
    uint64_t pause;

    while ((pause = poll_stream(stream, poll)) && !session->stop) {
        if (session->pooled) {
            session->streams->needs_capacity = stream;
            return;
        }
        atomic_store_explicit(&session->streams->waits_in_flight, true, memory_order_relaxed);
        session_set_at_rest(session, true);
        nanosleep(&(struct timespec){.tv_nsec = (long)pause}, NULL);
    }
    if (!session_is_at_rest(session))
        return;
    atomic_store_explicit(&session->streams->waits_in_flight, false, memory_order_relaxed);
    suspend_await_end(session);
}

bool streams_need_capacity(const struct session *session)
{
    return session->streams->needs_capacity != NULL;
}

void streams_await_capacity(struct session *session)
{
    struct stream *stream = steal_pointer(session->streams->needs_capacity);
    struct flow_poll poll = {0};

    if (stream && session_enter(session, stream->device) == CUDA_SUCCESS)
        await_capacity(stream, &poll);
}

void stream_flow_step(struct stream *stream)
{
    struct flow_control *control = &stream->flow.control;
    struct flow_poll poll = {.begins_step = true,
                             .given = control->step - control->left,
                             .is_idle = !fence_pending(stream)};

    control->left = control->step;
    if (stream->session->server->streams->no_flow_control)
        return;
    if (poll.given)
        take_submissions(stream, &poll);
    await_capacity(stream, &poll);
}
