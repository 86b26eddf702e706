/* SPDX-License-Identifier: Apache-2.0 */
/* An event of two clients is one of the driver's in each context where it is recorded. */
#include "event.h"
#include "fake_driver.h"
#include "session_life.h"
#include "stream_state.h"

static struct event *make_event(struct fixture *fixture)
{
    const struct wire_cuEventCreate in = {.hEvent = fixture_handle(WIRE_EVENT, 11)};

    assert_int_equal(serve_cuEventCreate(fixture->session, &in), CUDA_SUCCESS);
    return session_lookup(fixture->session, WIRE_EVENT, in.hEvent);
}

static void name_event(struct fixture *fixture, struct event *event,
                       struct wire_cuIpcGetEventHandle_reply *ret_name)
{
    const struct wire_cuIpcGetEventHandle in = {.hEvent = fixture_handle(WIRE_EVENT, 11)};

    assert_int_equal(serve_cuIpcGetEventHandle(fixture->session, &in, event, ret_name),
                     CUDA_SUCCESS);
}

static struct event *open_event(struct session *session,
                                const struct wire_cuIpcGetEventHandle_reply *name)
{
    const struct wire_cuIpcOpenEventHandle in = {
        .hEvent = fixture_handle(WIRE_EVENT, 11), .key0 = name->key0, .key1 = name->key1};
    struct wire_cuIpcOpenEventHandle_reply out;

    assert_int_equal(serve_cuIpcOpenEventHandle(session, &in, &out), CUDA_SUCCESS);
    return session_lookup(session, WIRE_EVENT, in.hEvent);
}

static void record(struct fixture *fixture, struct event *event, struct stream *stream)
{
    const struct wire_cuEventRecordWithFlags in = {.seq = 1};

    assert_int_equal(serve_cuEventRecordWithFlags(fixture->session, &in, event, stream),
                     CUDA_SUCCESS);
}

static void wait_for(struct fixture *fixture, struct event *event, struct stream *stream)
{
    const struct wire_cuStreamWaitEvent in = {0};

    assert_int_equal(serve_cuStreamWaitEvent(fixture->session, &in, stream, event), CUDA_SUCCESS);
}

static void end_event(struct session *session, struct event *event)
{
    const struct wire_cuEventDestroy_v2 in = {.hEvent = fixture_handle(WIRE_EVENT, 11)};

    assert_int_equal(serve_cuEventDestroy_v2(session, &in, event), CUDA_SUCCESS);
}

static void each_context_records_its_own(void **state)
{
    struct fixture *fixture = *state;
    const struct server_client who = {.identity.pid = 4712};
    struct session *friend = session_create(&fixture->server, &who, 2);
    struct stream *here = fixture_stream(fixture, 1, CU_STREAM_NON_BLOCKING);
    struct stream *there = fixture_stream(fixture, 2, CU_STREAM_NON_BLOCKING);
    struct device *devices = fixture->server.devices.device;
    struct wire_cuIpcGetEventHandle_reply name;
    struct event *event = make_event(fixture), *opened;

    devices[1] = devices[0];
    devices[1].ordinal = 1;
    name_event(fixture, event, &name);
    opened = open_event(friend, &name);
    fake_trace();
    record(fixture, event, here);
    wait_for(fixture, opened, here);
    assert_string_equal(fake_trace(), "record e1 s1; write s1 1; wait s1 e1; ");
    there->device = &devices[1];
    record(fixture, opened, there);
    wait_for(fixture, event, here);
    assert_string_equal(fake_trace(), "event e2; record e2 s2; write s2 1; wait s1 e2; ");
    record(fixture, event, there);
    record(fixture, opened, here);
    wait_for(fixture, event, there);
    assert_string_equal(fake_trace(), "record e2 s2; write s2 1; record e1 s1; write s1 1; "
                                      "wait s2 e1; ");
    there->device = &devices[0];
    end_event(friend, opened);
    assert_string_equal(fake_trace(), "");
    end_event(fixture->session, event);
    assert_string_equal(fake_trace(), "destroy e1; destroy e2; ");
    session_destroy(friend);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_context_records_its_own, fixture_setup,
                                        fixture_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
