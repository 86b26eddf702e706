/* SPDX-License-Identifier: Apache-2.0 */
/* How many submissions a stream has in flight, once it is known how long they take. */
#include "clock.h"
#include "fake_driver.h"
#include "idle.h"
#include "stream_state.h"
#include "suspend.h"

#define EVENTS 64

/* Work that is done when it has been asked for so often. */
static struct {
    unsigned looks_wanted;
    unsigned looks[EVENTS]; /* at each event since it was recorded */
    unsigned events;
    struct session *suspended; /* until its thread looks at an event, at rest */
} gpu;

static CUresult create_event(CUevent *ret_event, unsigned flags)
{
    assert_true(gpu.events + 1 < EVENTS);
    *ret_event = (CUevent)(uintptr_t)++gpu.events;
    return CUDA_SUCCESS;
}

static CUresult record_event(CUevent event, CUstream stream)
{
    gpu.looks[(uintptr_t)event] = 0;
    return CUDA_SUCCESS;
}

static CUresult query_event(CUevent event)
{
    if (gpu.suspended && session_is_at_rest(gpu.suspended))
        gpu.suspended->suspended.until = 0;
    return ++gpu.looks[(uintptr_t)event] <= gpu.looks_wanted ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

/* A stream whose submissions are known to take so long. */
static struct stream *make_stream(void **state, uint32_t index, uint64_t submission_ns,
                                  int32_t limit)
{
    struct fixture *fixture = *state;

    gpu.events = 0;
    gpu.looks_wanted = 3;
    driver.cuEventCreate = create_event;
    driver.cuEventRecord = record_event;
    driver.cuEventQuery = query_event;
    fixture->server.streams->no_flow_control = false;
    struct stream *stream = fixture_stream(fixture, index, CU_STREAM_NON_BLOCKING);
    stream->flow.control.submission_ns = submission_ns;
    stream->flow.control.limit = limit;
    return stream;
}

/* How many submissions were in flight at most when the next one was given. */
static int32_t give(struct stream *stream, unsigned count)
{
    int32_t most = 0;

    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(stream_begin_work(stream), CUDA_SUCCESS);
        if (stream->flow.control.in_flight > most)
            most = stream->flow.control.in_flight;
        stream_end_work(stream, 0, CUDA_SUCCESS);
    }
    return most;
}

/* So long that what a busy machine measures does not change it in this test. */
#define VERY_LONG (1000 * NS_PER_SEC)

static void submissions_that_take_long_come_two_at_a_time(void **state)
{
    struct stream *stream = make_stream(state, 1, VERY_LONG, 2);

    assert_int_equal(give(stream, 12), 1);
    stream_flow_end(stream);
}

static void a_stream_has_no_more_events_than_checkpoints_at_a_time(void **state)
{
    struct stream *stream = make_stream(state, 1, VERY_LONG, 2);

    gpu.looks_wanted = 0;
    give(stream, 100);
    assert_in_range(gpu.events, 1, 2);
    stream_flow_end(stream);
}

/* The first checkpoint is polled a thousand times, 20 us apart or more. */
static void waiting_tells_that_submissions_take_long(void **state)
{
    struct stream *stream = make_stream(state, 1, 0, 4);

    gpu.looks_wanted = 1100;
    give(stream, 5);
    assert_true(stream->flow.control.submission_ns >= 20 * NS_PER_MS / 4);
    stream_flow_end(stream);
}

/* Else the work of the other, which is in the ring behind its own, would never overlap with it. */
static void one_of_several_streams_gets_more(void **state)
{
    struct stream *stream = make_stream(state, 1, VERY_LONG, 2);

    assert_non_null(make_stream(state, 2, 0, 12));
    assert_in_range(give(stream, 40), 4, 8);
    stream_flow_end(stream);
}

/* What comes of giving each stream so many submissions in turn, once that has been seen. */
static int32_t give_in_turns(void **state, unsigned burst)
{
    struct stream *one = make_stream(state, 1, VERY_LONG, 2);
    struct stream *other = make_stream(state, 2, VERY_LONG, 2);
    int32_t most = 0;

    for (unsigned turn = 0; turn < 12; turn++) {
        int32_t in_flight = give(turn % 2 ? other : one, burst);
        most = turn >= 4 && in_flight > most ? in_flight : most;
    }
    stream_flow_end(one);
    stream_flow_end(other);
    return most;
}

static void streams_that_are_used_in_turn_get_no_more(void **state)
{
    assert_in_range(give_in_turns(state, 1), 1, 2);
}

static void streams_that_are_filled_in_turn_get_a_whole_burst(void **state)
{
    assert_in_range(give_in_turns(state, 6), 5, 7);
}

static void unless_another_client_waits_for_an_idle_point(void **state)
{
    struct fixture *fixture = *state;
    struct stream *stream = make_stream(state, 1, VERY_LONG, 2);

    assert_non_null(make_stream(state, 2, 0, 12));
    idle_waiter_begin(&fixture->server);
    assert_int_equal(give(stream, 12), 1);
    idle_waiter_end(&fixture->server);
    stream_flow_end(stream);
}

static void nor_one_that_waits_for_its_client(void **state)
{
    struct fixture *fixture = *state;
    struct stream *stream = make_stream(state, 1, VERY_LONG, 2);

    fixture->session->streams->has_host_waits = true;
    gpu.looks_wanted = 1000000;
    assert_in_range(give(stream, 200), 100, 200);
    stream_flow_end(stream);
}

static void a_suspended_session_shows_how_far_it_comes(void **state)
{
    struct fixture *fixture = *state;
    struct stream *stream = make_stream(state, 1, VERY_LONG, 2);

    give(stream, 4);
    assert_int_equal(stream->flow.count, 1);
    gpu.looks_wanted = 0;
    gpu.suspended = fixture->session;
    fixture->session->suspended.until = UINT64_MAX;
    fixture->session->suspended.count = 1;
    suspend_await_end(fixture->session);
    assert_int_equal(stream->flow.count, 0);
    assert_true(streams_progress(fixture->session).at > 0);
    assert_false(session_is_at_rest(fixture->session));
    gpu.suspended = NULL;
    stream_flow_end(stream);
}

/* The checkpoints of a stream use the same events again. */
static void a_stream_keeps_its_events(void **state)
{
    struct stream *stream = make_stream(state, 1, VERY_LONG, 2);

    give(stream, 4 * FLOW_CHECKPOINTS_MAX);
    assert_in_range(gpu.events, 1, FLOW_CHECKPOINTS_MAX);
    stream_flow_end(stream);
}

/* The submissions of a program that waits for each are never waited for, nor do they get an event.
 */
static void a_stream_that_is_idle_each_time_costs_nothing(void **state)
{
    struct stream *stream = make_stream(state, 1, 0, 12);
    const struct fixture *fixture = *state;

    for (uint32_t seq = 1; seq < 100; seq++) {
        assert_int_equal(stream_begin_work(stream), CUDA_SUCCESS);
        stream_end_work(stream, seq, CUDA_SUCCESS);
        *window_fence(&fixture->window, 1) = seq;
    }
    assert_int_equal(gpu.events, 0);
    assert_int_equal(stream->flow.control.in_flight, 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(submissions_that_take_long_come_two_at_a_time),
        CASE(waiting_tells_that_submissions_take_long),
        CASE(one_of_several_streams_gets_more),
        CASE(streams_that_are_used_in_turn_get_no_more),
        CASE(streams_that_are_filled_in_turn_get_a_whole_burst),
        CASE(unless_another_client_waits_for_an_idle_point),
        CASE(nor_one_that_waits_for_its_client),
        CASE(a_suspended_session_shows_how_far_it_comes),
        CASE(a_stream_has_no_more_events_than_checkpoints_at_a_time),
        CASE(a_stream_keeps_its_events),
        CASE(a_stream_that_is_idle_each_time_costs_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
