/* SPDX-License-Identifier: Apache-2.0 */
/* Streams and events beyond a quota are kept without the driver's, and only so many. */
#include "refused_objects.h"

#include "event.h"
#include "fake_driver.h"
#include "stream_state.h"

static CUresult create_event(struct fixture *fixture, uint32_t number)
{
    const struct wire_cuEventCreate in = {.hEvent = fixture_handle(WIRE_EVENT, number)};

    return serve_cuEventCreate(fixture->session, &in);
}

static struct event *find_event(struct fixture *fixture, uint32_t number)
{
    return session_lookup(fixture->session, WIRE_EVENT, fixture_handle(WIRE_EVENT, number));
}

static void end_event(struct fixture *fixture, uint32_t number)
{
    const struct wire_cuEventDestroy_v2 in = {.hEvent = fixture_handle(WIRE_EVENT, number)};

    serve_cuEventDestroy_v2(fixture->session, &in, find_event(fixture, number));
}

static void end_events(struct fixture *fixture)
{
    for (uint32_t number = 1; number < 1u << 14; number++) {
        if (find_event(fixture, number))
            end_event(fixture, number);
    }
    assert_int_equal(quota_held(fixture->session, QUOTA_EVENTS), 0);
    assert_int_equal(fixture->session->streams->refused, 0);
}

/* What is recorded in it is awaited by its fence. */
static void a_record_of_a_refused_event_is_written(void **state)
{
    const struct wire_cuEventRecordWithFlags in = {.seq = 5};
    struct fixture *fixture = *state;

    server_quotas_init("events=16");
    for (uint32_t i = 0; i < 16; i++)
        assert_int_equal(create_event(fixture, 1 + i), CUDA_SUCCESS);
    assert_int_equal(create_event(fixture, 17), CUDA_ERROR_OUT_OF_MEMORY);
    struct event *event = find_event(fixture, 17);
    assert_non_null(event);
    assert_null(event->driver);
    assert_int_equal(quota_held(fixture->session, QUOTA_EVENTS), 16);
    struct stream *stream = fixture_stream(fixture, 100, CU_STREAM_NON_BLOCKING);
    fake_trace();
    assert_int_equal(serve_cuEventRecordWithFlags(fixture->session, &in, event, stream),
                     CUDA_ERROR_INVALID_HANDLE);
    assert_string_equal(fake_trace(), "write s1 5; ");
    end_events(fixture);
}

static void a_refused_event_does_not_count(void **state)
{
    struct fixture *fixture = *state;

    server_quotas_init("events=16");
    for (uint32_t i = 0; i < 18; i++)
        create_event(fixture, 1 + i);
    end_event(fixture, 17);
    assert_int_equal(quota_held(fixture->session, QUOTA_EVENTS), 16);
    end_event(fixture, 1);
    assert_int_equal(create_event(fixture, 1), CUDA_SUCCESS);
    assert_int_equal(quota_held(fixture->session, QUOTA_EVENTS), 16);
    assert_int_equal(fixture->session->streams->refused, 1);
    end_events(fixture);
}

static void refused_objects_are_not_kept_without_end(void **state)
{
    struct fixture *fixture = *state;
    uint32_t number = 0, last;

    server_quotas_init("events=16");
    do
        create_event(fixture, ++number);
    while (find_event(fixture, number));
    last = number - 1;
    assert_in_range(last, 17, 1u << 14);
    end_event(fixture, last);
    create_event(fixture, number);
    assert_non_null(find_event(fixture, number));
    end_events(fixture);
}

static void a_refused_stream_writes_its_fences(void **state)
{
    struct fixture *fixture = *state;

    server_quotas_init("streams=4");
    for (uint32_t i = 0; i < 4; i++)
        fixture_stream(fixture, 1 + i, CU_STREAM_NON_BLOCKING);
    struct stream *stream = fixture_stream(fixture, 7, CU_STREAM_NON_BLOCKING);
    assert_non_null(stream);
    assert_null(stream->driver);
    assert_int_equal(quota_held(fixture->session, QUOTA_STREAMS), 4);
    assert_int_equal(stream_end_work(stream, 5, stream_begin_brief(stream)),
                     CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(*window_fence(&fixture->window, 7), 5);
    const struct wire_cuStreamDestroy_v2 in = {.hStream = fixture_handle(WIRE_STREAM, 7)};
    assert_int_equal(serve_cuStreamDestroy_v2(fixture->session, &in, stream), CUDA_SUCCESS);
    assert_int_equal(quota_held(fixture->session, QUOTA_STREAMS), 4);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(a_record_of_a_refused_event_is_written),
        CASE(a_refused_event_does_not_count),
        CASE(refused_objects_are_not_kept_without_end),
        CASE(a_refused_stream_writes_its_fences),
    };

    return cmocka_run_group_tests_name("refused objects", tests, NULL, NULL);
}
