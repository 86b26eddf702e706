/* SPDX-License-Identifier: Apache-2.0 */
/* Events: a record is a fence, and waiting for one that has passed sends nothing. */
#include "client_event.h"

#include "client_fixture.h"
#include "client_prototypes.h"

static CUevent create(unsigned flags)
{
    struct wire_cuEventCreate in;
    CUevent event;

    assert_int_equal(client_cuEventCreate(&event, flags), CUDA_SUCCESS);
    fixture_expect(cuEventCreate, &in);
    assert_int_equal(in.hEvent, (uint64_t)event);
    return event;
}

static void test_one_that_was_never_recorded_is_done(void **state)
{
    CUevent event = create(CU_EVENT_DISABLE_TIMING);

    assert_int_equal(client_cuEventQuery(event), CUDA_SUCCESS);
    assert_int_equal(client_cuEventSynchronize(event), CUDA_SUCCESS);
    assert_true(fence_passed(event_fence(event)));
    fixture_expect_nothing();
}

static void test_a_record_is_pending_until_its_number_arrives(void **state)
{
    struct stream *stream = fixture_stream(CU_STREAM_NON_BLOCKING);
    CUevent event = create(CU_EVENT_DISABLE_TIMING);
    struct wire_cuEventRecordWithFlags in;

    assert_int_equal(client_cuEventRecord(event, (CUstream)stream->handle), CUDA_SUCCESS);
    fixture_expect(cuEventRecordWithFlags, &in);
    assert_int_equal(in.hEvent, (uint64_t)event);
    assert_int_equal(client_cuEventQuery(event), CUDA_ERROR_NOT_READY);
    fixture.fences[stream->word] = in.seq;
    assert_int_equal(client_cuEventQuery(event), CUDA_SUCCESS);
}

static void test_waiting_sends_a_command_only_for_a_pending_record(void **state)
{
    struct stream *stream = fixture_stream(CU_STREAM_NON_BLOCKING);
    struct stream *other = fixture_stream(CU_STREAM_NON_BLOCKING);
    CUevent event = create(CU_EVENT_DISABLE_TIMING);
    struct wire_cuEventRecordWithFlags record;
    struct wire_cuStreamWaitEvent in;

    assert_int_equal(client_cuStreamWaitEvent((CUstream)other->handle, event, 0), CUDA_SUCCESS);
    fixture_expect_nothing();
    assert_int_equal(client_cuEventRecord(event, (CUstream)stream->handle), CUDA_SUCCESS);
    fixture_expect(cuEventRecordWithFlags, &record);
    assert_int_equal(client_cuStreamWaitEvent((CUstream)other->handle, event, 0), CUDA_SUCCESS);
    fixture_expect(cuStreamWaitEvent, &in);
    assert_int_equal(in.hStream, other->handle);
    fixture_finish(stream);
    assert_int_equal(client_cuStreamWaitEvent((CUstream)other->handle, event, 0), CUDA_SUCCESS);
    fixture_expect_nothing();
}

static void test_time_needs_two_timed_records(void **state)
{
    struct stream *stream = fixture_stream(CU_STREAM_NON_BLOCKING);
    CUevent timed = create(CU_EVENT_DEFAULT), untimed = create(CU_EVENT_DISABLE_TIMING);
    float milliseconds;

    assert_int_equal(client_cuEventElapsedTime_v2(&milliseconds, timed, timed),
                     CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(client_cuEventRecord(timed, (CUstream)stream->handle), CUDA_SUCCESS);
    assert_int_equal(client_cuEventRecord(untimed, (CUstream)stream->handle), CUDA_SUCCESS);
    assert_int_equal(client_cuEventElapsedTime_v2(&milliseconds, timed, timed),
                     CUDA_ERROR_NOT_READY);
    fixture_finish(stream);
    assert_int_equal(client_cuEventElapsedTime_v2(&milliseconds, timed, untimed),
                     CUDA_ERROR_INVALID_HANDLE);
}

static void test_wrong_flags_and_handles(void **state)
{
    CUevent event;

    assert_int_equal(client_cuEventCreate(&event, 0x40), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(client_cuEventCreate(&event, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(client_cuEventQuery((CUevent)1), CUDA_ERROR_INVALID_HANDLE);
    event = create(CU_EVENT_DISABLE_TIMING);
    assert_true(event_exists(event));
    assert_int_equal(client_cuEventDestroy_v2(event), CUDA_SUCCESS);
    assert_false(event_exists(event));
    assert_int_equal(client_cuEventDestroy_v2(event), CUDA_ERROR_INVALID_HANDLE);
}

static void test_replay_makes_it_again_under_its_handle(void **state)
{
    struct wire_cuEventCreate in;
    CUevent event = create(CU_EVENT_BLOCKING_SYNC);
    void *object = handles_get(&client->handles, WIRE_EVENT, (uint64_t)event);

    assert_int_equal(event_replay(object), CUDA_SUCCESS);
    fixture_expect(cuEventCreate, &in);
    assert_int_equal(in.hEvent, (uint64_t)event);
    assert_int_equal(in.flags, CU_EVENT_BLOCKING_SYNC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_CASE(test_one_that_was_never_recorded_is_done),
        FIXTURE_CASE(test_a_record_is_pending_until_its_number_arrives),
        FIXTURE_CASE(test_waiting_sends_a_command_only_for_a_pending_record),
        FIXTURE_CASE(test_time_needs_two_timed_records),
        FIXTURE_CASE(test_wrong_flags_and_handles),
        FIXTURE_CASE(test_replay_makes_it_again_under_its_handle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
