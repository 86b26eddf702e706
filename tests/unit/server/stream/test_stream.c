/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order between a client's legacy default stream and its other streams, as shown by the events
 * that the driver is asked for.
 */
#include "client_class.h"
#include "driver_stream.h"
#include "fake_driver.h"
#include "stream_state.h"

static void work(struct stream *stream)
{
    assert_int_equal(stream_end_work(stream, 0, stream_begin_brief(stream)), CUDA_SUCCESS);
}

static void one_stream_costs_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct stream *legacy = fixture_stream(fixture, 1, WIRE_STREAM_LEGACY);

    fake_trace();
    work(legacy);
    work(legacy);
    assert_string_equal(fake_trace(), "");
}

static void legacy_waits_for_blocking(void **state)
{
    struct fixture *fixture = *state;
    struct stream *legacy = fixture_stream(fixture, 1, WIRE_STREAM_LEGACY);
    struct stream *other = fixture_stream(fixture, 2, 0);

    work(other);
    fake_trace();
    work(legacy);
    assert_string_equal(fake_trace(), "event e1; record e1 s2; wait s1 e1; ");
    work(legacy); /* nothing new on the other */
    assert_string_equal(fake_trace(), "");
}

static void blocking_waits_for_legacy(void **state)
{
    struct fixture *fixture = *state;
    struct stream *legacy = fixture_stream(fixture, 1, WIRE_STREAM_LEGACY);
    struct stream *other = fixture_stream(fixture, 2, 0);

    work(legacy);
    fake_trace();
    work(other);
    assert_string_equal(fake_trace(), "event e1; record e1 s1; wait s2 e1; ");
    work(other);
    assert_string_equal(fake_trace(), "");
    work(legacy);
    assert_string_equal(fake_trace(), "event e2; record e2 s2; wait s1 e2; ");
    work(other); /* the legacy stream has new work: its event is recorded anew */
    assert_string_equal(fake_trace(), "record e1 s1; wait s2 e1; ");
}

static void one_record_serves_all(void **state)
{
    struct fixture *fixture = *state;
    struct stream *legacy = fixture_stream(fixture, 1, WIRE_STREAM_LEGACY);
    struct stream *a = fixture_stream(fixture, 2, 0);
    struct stream *b = fixture_stream(fixture, 3, 0);

    work(legacy);
    fake_trace();
    work(a);
    work(b);
    assert_string_equal(fake_trace(), "event e1; record e1 s1; wait s2 e1; wait s3 e1; ");
}

static void non_blocking_streams_are_not_ordered(void **state)
{
    struct fixture *fixture = *state;
    struct stream *legacy = fixture_stream(fixture, 1, WIRE_STREAM_LEGACY);
    struct stream *other = fixture_stream(fixture, 2, CU_STREAM_NON_BLOCKING);

    fake_trace();
    work(other);
    work(legacy);
    work(other);
    assert_string_equal(fake_trace(), "");
}

static void destroyed_stream_is_still_waited_for(void **state)
{
    struct fixture *fixture = *state;
    const struct wire_cuStreamDestroy_v2 in = {.hStream = fixture_handle(WIRE_STREAM, 2)};
    struct stream *other;

    fixture_stream(fixture, 1, WIRE_STREAM_LEGACY);
    other = fixture_stream(fixture, 2, 0);
    work(other);
    fake_trace();
    assert_int_equal(serve_cuStreamDestroy_v2(fixture->session, &in, other), CUDA_SUCCESS);
    assert_string_equal(fake_trace(),
                        "event e1; record e1 s2; wait s1 e1; destroy e1; destroy s2; ");
    assert_null(session_lookup(fixture->session, WIRE_STREAM, in.hStream));
    assert_int_equal(quota_held(fixture->session, QUOTA_STREAMS), 1);
}

/* Where a client borrows, each of its streams goes on behind what it has, and is made once. */
static void streams_change_their_place(void **state)
{
    struct fixture *fixture = *state;
    struct session *session = fixture->session;
    struct stream *stream = fixture_stream(fixture, 1, CU_STREAM_NON_BLOCKING);
    const struct device *device = stream->device;

    work(stream);
    fake_trace();
    streams_change_place(session, device, true);
    assert_string_equal(fake_trace(), "stream s2 0; event e1; record e1 s1; wait s2 e1; ");
    assert_true(stream->is_away);
    assert_int_equal(stream->flow.control.in_flight_ns, FLOW_LENT_NS);
    work(stream);
    streams_change_place(session, device, false);
    assert_string_equal(fake_trace(), "record e1 s2; wait s1 e1; ");
    streams_change_place(session, device, true);
    assert_string_equal(fake_trace(), "wait s2 e1; ");
    assert_int_equal(fake.streams, 2);
    driver_stream_drop(stream);
    assert_string_equal(fake_trace(), "destroy s1; destroy s2; ");
}

/* One that is made meanwhile has its own part to go back to. */
static void new_streams_are_made_at_home(void **state)
{
    struct fixture *fixture = *state;
    struct session *session = fixture->session;

    fixture_stream(fixture, 1, CU_STREAM_NON_BLOCKING);
    streams_change_place(session, &fixture->server.devices.device[0], true);
    struct stream *stream = fixture_stream(fixture, 2, CU_STREAM_NON_BLOCKING);
    assert_true(stream->is_away);
    streams_change_place(session, stream->device, false);
    assert_false(stream->is_away);
    assert_int_equal(fake.streams, 4);
}

/* The client already waits for the fence, so it must be written. */
static void refused_stream_writes_its_fences(void **state)
{
    struct fixture *fixture = *state;

    fake.refusal = CUDA_ERROR_OUT_OF_MEMORY;
    struct stream *stream = fixture_stream(fixture, 7, 0);
    assert_non_null(stream);
    assert_null(stream->driver);
    assert_int_equal(stream_end_work(stream, 5, stream_begin_brief(stream)),
                     CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(*window_fence(&fixture->window, 7), 5);
}

static void failed_work_writes_its_fence(void **state)
{
    struct fixture *fixture = *state;
    struct stream *stream = fixture_stream(fixture, 1, 0);

    fake_trace();
    assert_int_equal(stream_end_work(stream, 9, CUDA_ERROR_INVALID_VALUE),
                     CUDA_ERROR_INVALID_VALUE);
    assert_string_equal(fake_trace(), "write s1 9; ");
}

static CUresult create(struct fixture *fixture, uint64_t handle, uint32_t flags, uint32_t word,
                       uint32_t device)
{
    const struct wire_cuStreamCreateWithPriority in = {
        .hStream = handle, .flags = flags, .word = word, .device = device};

    return serve_cuStreamCreateWithPriority(fixture->session, &in);
}

static void invalid_requests_are_refused(void **state)
{
    struct fixture *fixture = *state;
    uint64_t handle = fixture_handle(WIRE_STREAM, 1);

    assert_int_equal(create(fixture, handle, 0, 4096, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(create(fixture, handle, 0x10, 0, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(create(fixture, handle, 0, 0, 1), CUDA_ERROR_INVALID_DEVICE);
    assert_int_equal(create(fixture, fixture_handle(WIRE_EVENT, 1), 0, 0, 0),
                     CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(create(fixture, fixture_handle(WIRE_STREAM, SESSION_HANDLES_MAX), 0, 0, 0),
                     CUDA_ERROR_INVALID_HANDLE);
    assert_string_equal(fake_trace(), "");
    assert_int_equal(quota_held(fixture->session, QUOTA_STREAMS), 0);
    assert_int_equal(create(fixture, handle, 0, 0, 0), CUDA_SUCCESS);
    assert_int_equal(create(fixture, handle, 0, 0, 0), CUDA_ERROR_INVALID_HANDLE);
}

static void priority_is_granted_within_the_range(void **state)
{
    struct fixture *fixture = *state;

    fixture_stream(fixture, 1, 0);
    assert_string_equal(fake_trace(), "stream s1 -1; ");
    fixture->session->limits.class = CLASS_CRITICAL;
    fixture_stream(fixture, 2, 0);
    assert_string_equal(fake_trace(), "stream s2 -2; ");
    fixture->session->limits.priority = 1;
    fixture_stream(fixture, 3, 0);
    assert_string_equal(fake_trace(), "stream s3 0; ");
}

/* Outside of its static partition a client runs nothing, whatever its library sends. */
static void no_stream_without_a_static_partition(void **state)
{
    struct fixture *fixture = *state;
    const struct wire_cuStreamCreateWithPriority in = {.hStream = fixture_handle(WIRE_STREAM, 1)};
    const struct wire_fnShareCreate share = {.sm_count = 2};
    struct wire_fnShareCreate_reply reply;

    fixture->session->limits.fixed_only = 1;
    assert_int_equal(serve_cuStreamCreateWithPriority(fixture->session, &in),
                     CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
    assert_int_equal(serve_fnShareCreate(fixture->session, &share, &reply),
                     CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(one_stream_costs_nothing),
        CASE(legacy_waits_for_blocking),
        CASE(blocking_waits_for_legacy),
        CASE(one_record_serves_all),
        CASE(non_blocking_streams_are_not_ordered),
        CASE(destroyed_stream_is_still_waited_for),
        CASE(streams_change_their_place),
        CASE(new_streams_are_made_at_home),
        CASE(refused_stream_writes_its_fences),
        CASE(failed_work_writes_its_fence),
        CASE(invalid_requests_are_refused),
        CASE(priority_is_granted_within_the_range),
        CASE(no_stream_without_a_static_partition),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
