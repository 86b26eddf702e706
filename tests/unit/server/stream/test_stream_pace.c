/* SPDX-License-Identifier: Apache-2.0 */
/* How many pieces of work a stream has in flight, by how long they take. */
#include "clock.h"
#include "fake_driver.h"
#include "stream_state.h"

#define EVENTS 64

/* A stream whose pieces take so long each, one behind the other. */
static struct {
    uint64_t piece_ns;
    uint64_t idle_at;        /* when it has done all that it was given */
    uint64_t behind[EVENTS]; /* when it comes to each event */
    unsigned events;
} gpu;

static CUresult create_event(CUevent *ret_event, unsigned flags)
{
    assert_true(gpu.events + 1 < EVENTS);
    *ret_event = (CUevent)(uintptr_t)++gpu.events;
    return CUDA_SUCCESS;
}

static CUresult record_event(CUevent event, CUstream stream)
{
    gpu.behind[(uintptr_t)event] = gpu.idle_at;
    return CUDA_SUCCESS;
}

static CUresult query_event(CUevent event)
{
    return clock_ns() < gpu.behind[(uintptr_t)event] ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

static struct stream *make_stream(void **state, uint32_t index)
{
    struct fixture *fixture = *state;

    gpu.events = 0;
    gpu.idle_at = 0;
    driver.cuEventCreate = create_event;
    driver.cuEventRecord = record_event;
    driver.cuEventQuery = query_event;
    fixture->server.streams->no_pace = false;
    return fixture_stream(fixture, index, CU_STREAM_NON_BLOCKING);
}

/* How much work the stream had in flight at most, in time, once something was known of it. */
static uint64_t give(struct stream *stream, unsigned count, uint64_t piece_ns)
{
    uint64_t most = 0;

    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(stream_begin_work(stream), CUDA_SUCCESS);
        uint64_t now = clock_ns();
        gpu.idle_at = (gpu.idle_at > now ? gpu.idle_at : now) + piece_ns;
        stream_end(stream, 0, CUDA_SUCCESS);
        if (i >= count / 2 && gpu.idle_at - now > most)
            most = gpu.idle_at - now;
    }
    return most;
}

static void pieces_that_take_long_come_few_at_a_time(void **state)
{
    struct stream *stream = make_stream(state, 1);

    assert_in_range(give(stream, 40, 25 * NS_PER_MS), 25 * NS_PER_MS, 5 * 25 * NS_PER_MS);
    assert_in_range(stream->pace.batch, 1, 2);
    stream_pace_end(stream);
}

/* On a busy machine the times are not exact, so the bounds here are wide. */
static void short_ones_come_as_many_as_the_time_allows(void **state)
{
    struct stream *stream = make_stream(state, 1);

    assert_in_range(give(stream, 300, 2 * NS_PER_MS), 2 * NS_PER_MS, 5 * PACE_AHEAD_NS);
    stream_pace_end(stream);
}

static void one_of_several_streams_gets_all(void **state)
{
    struct stream *stream = make_stream(state, 1);

    assert_non_null(make_stream(state, 2));
    give(stream, 200, 1 * NS_PER_SEC);
    assert_in_range(stream->pace.in_flight, 100, 200);
    stream_pace_end(stream);
}

static void unless_another_client_waits_for_calm(void **state)
{
    struct fixture *fixture = *state;
    struct stream *stream = make_stream(state, 1);

    assert_non_null(make_stream(state, 2));
    stream_pace_seek(&fixture->server);
    assert_in_range(give(stream, 40, 25 * NS_PER_MS), 25 * NS_PER_MS, 5 * 25 * NS_PER_MS);
    stream_pace_seek_end(&fixture->server);
    stream_pace_end(stream);
}

/* The pieces of a program that waits for each are never waited for, nor do they get an event. */
static void a_stream_that_is_idle_each_time_costs_nothing(void **state)
{
    struct stream *stream = make_stream(state, 1);
    const struct fixture *fixture = *state;

    for (uint32_t seq = 1; seq < 100; seq++) {
        assert_int_equal(stream_begin_work(stream), CUDA_SUCCESS);
        stream_end(stream, seq, CUDA_SUCCESS);
        *window_fence(&fixture->window, 1) = seq;
    }
    assert_int_equal(gpu.events, 0);
    assert_int_equal(stream->pace.in_flight, 0);
    assert_int_equal(stream->pace.batch, PACE_BATCH_MAX);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(pieces_that_take_long_come_few_at_a_time),
        CASE(short_ones_come_as_many_as_the_time_allows),
        CASE(one_of_several_streams_gets_all),
        CASE(unless_another_client_waits_for_calm),
        CASE(a_stream_that_is_idle_each_time_costs_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
