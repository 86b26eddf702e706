/* SPDX-License-Identifier: Apache-2.0 */
/* See stream_flow.h. */
#include "stream_flow.h"

#include <time.h>

#include "cleanup.h"
#include "idle.h"
#include "sm_share.h"
#include "stream_state.h"
#include "suspend.h"

#define SUSPENDED_PAUSE_NS (100 * NS_PER_US)

void stream_flow_init(struct stream *stream)
{
    flow_control_init(&stream->flow.control, stream->session->server->streams->no_flow_control);
}

/* ---- checkpoints ---- */

/* Returns how many submissions were before it. */
static int32_t drop_first(struct stream_flow *flow)
{
    const struct flow_checkpoint *first = &flow->checkpoints[flow->first];

    checkpoint_drop(&first->checkpoint);
    flow->first = (flow->first + 1) % FLOW_CHECKPOINTS_MAX;
    flow->count--;
    return first->submissions;
}

void stream_flow_end(struct stream *stream)
{
    while (stream->flow.count)
        drop_first(&stream->flow);
    flow_control_clear(&stream->flow.control);
}

/* Where there are too many, the last one moves behind the new submissions. */
static void add_checkpoint(struct stream *stream, int32_t submissions)
{
    struct stream_flow *flow = &stream->flow;
    bool moves = flow->count == FLOW_CHECKPOINTS_MAX;
    struct flow_checkpoint *last =
        &flow->checkpoints[(flow->first + flow->count - moves) % FLOW_CHECKPOINTS_MAX];

    if (!moves) {
        if (checkpoint_take(&last->checkpoint, stream->device) != CUDA_SUCCESS)
            return;
        last->submissions = 0;
        flow->count++;
    }
    last->submissions += submissions;
    flow->control.in_flight += submissions;
    checkpoint_set(&last->checkpoint, stream->driver);
}

/* Of the checkpoint that comes next; 0 = there is none. */
static int32_t awaited_submissions(const struct stream_flow *flow)
{
    return flow->count ? flow->checkpoints[flow->first].submissions : 0;
}

/* Partners: streams_progress(), and makes_progress() in long_work_watch.c. */
static void note_progress(struct stream *stream, uint64_t now)
{
    struct session_streams *streams = stream->session->streams;

    atomic_store_explicit(&stream->flow.progressed_at, now, memory_order_relaxed);
    atomic_store_explicit(&streams->progressed_at, now, memory_order_relaxed);
    if (stream->flow.control.submission_ns >= LONG_WORK_NS)
        atomic_store_explicit(&streams->long_step_at, now, memory_order_relaxed);
}

/* Drops the checkpoints that the stream has reached by `now`; it had not reached the first of them
 * at `before`, or that is 0. Whether there were some. */
static bool take_reached(struct stream *stream, uint64_t before, uint64_t now)
{
    struct stream_flow *flow = &stream->flow;
    int32_t done = 0;

    while (flow->count && checkpoint_is_reached(&flow->checkpoints[flow->first].checkpoint))
        done += drop_first(flow);
    if (!done)
        return false;
    flow_control_done(&flow->control, done, before, now);
    note_progress(stream, now);
    return true;
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

/* ---- waiting ---- */

static bool may_be_given_more(const struct stream *stream)
{
    const struct session *session = stream->session;
    const struct flow_control *control = &stream->flow.control;

    if (session->streams->has_host_waits)
        return control->in_flight < FLOW_SUBMISSIONS_MAX;
    return flow_control_has_capacity(control, stream->sm_share->streams == 1 || stream->is_away ||
                                                  idle_has_waiters(session->server));
}

static void pause_for(uint64_t ns)
{
    const struct timespec pause = {.tv_nsec = (long)ns};

    nanosleep(&pause, NULL);
}

static void await_checkpoints(struct stream *stream)
{
    struct stream_flow *flow = &stream->flow;
    uint64_t now = clock_ns(), since = now;

    while (!may_be_given_more(stream) && !stream->session->stop) {
        uint64_t before = now;
        pause_for(flow_control_poll_ns(&flow->control, awaited_submissions(flow)));
        now = clock_ns();
        if (take_reached(stream, before, now)) {
            since = now;
            continue;
        }
        if (flow_control_waited(&flow->control, awaited_submissions(flow), now - since))
            since = now;
    }
}

bool streams_are_suspended(struct session *session)
{
    return !session->stop && session_is_suspended(session);
}

/* The others see how far its work has come. */
static void poll_checkpoints(struct session *session)
{
    for (unsigned i = 0; i < session->server->devices.count; i++) {
        list_for_each (struct stream, stream, &session->streams->of_device[i], link) {
            if (stream->flow.count && session_enter(session, stream->device) == CUDA_SUCCESS)
                take_reached(stream, 0, clock_ns());
        }
    }
}

void streams_await_resume(struct session *session)
{
    if (!streams_are_suspended(session))
        return;
    session_set_at_rest(session, true);
    while (streams_are_suspended(session)) {
        pause_for(SUSPENDED_PAUSE_NS);
        poll_checkpoints(session);
    }
    session_set_at_rest(session, false);
}

static void set_waits_in_flight(struct session *session, bool waits)
{
    atomic_store_explicit(&session->streams->waits_in_flight, waits, memory_order_relaxed);
}

static void wait_for_capacity(struct stream *stream)
{
    session_set_at_rest(stream->session, true);
    set_waits_in_flight(stream->session, true);
    await_checkpoints(stream);
    set_waits_in_flight(stream->session, false);
    session_set_at_rest(stream->session, false);
    streams_await_resume(stream->session);
}

/* A worker of the pool never waits: the session's thread does it before the next command. */
static void wait_or_postpone(struct stream *stream)
{
    if (stream->session->pooled)
        stream->session->streams->needs_capacity = stream;
    else
        wait_for_capacity(stream);
}

bool streams_need_capacity(const struct session *session)
{
    return session->streams->needs_capacity != NULL;
}

void streams_await_capacity(struct session *session)
{
    struct stream *stream = steal_pointer(session->streams->needs_capacity);

    if (stream && session_enter(session, stream->device) == CUDA_SUCCESS)
        wait_for_capacity(stream);
}

/* ---- steps ---- */

static void count_burst(struct stream *stream, int32_t submissions)
{
    struct session_streams *streams = stream->session->streams;

    flow_control_count_burst(&stream->flow.control, submissions,
                             streams->given_last != stream->word);
    streams->given_last = stream->word;
}

/* The submissions since the last step; `idle` = the stream has done them all. */
static void note_submissions(struct stream *stream, int32_t submissions, bool idle, uint64_t now)
{
    if (!idle && submissions)
        add_checkpoint(stream, submissions);
    if (!idle)
        take_reached(stream, 0, now);
    if (idle || !stream->flow.count)
        flow_control_done_since_step(&stream->flow.control, submissions, now);
    if (idle)
        stream_flow_end(stream);
}

void stream_flow_step(struct stream *stream)
{
    struct session *session = stream->session;
    struct flow_control *control = &stream->flow.control;
    int32_t submissions = control->step - control->left;
    bool idle = !fence_pending(session, stream->word);

    if (submissions)
        count_burst(stream, submissions);
    if (stream->driver && !session->server->streams->no_flow_control &&
        session_enter(session, stream->device) == CUDA_SUCCESS) {
        uint64_t now = clock_ns();
        note_submissions(stream, submissions, idle, now);
        if (!idle && !may_be_given_more(stream))
            wait_or_postpone(stream);
        control->stepped_at = now;
    }
    flow_control_step(control, idle);
}
