/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that delivers device printf output: how it makes the driver write it, and that fences
 * come behind it.
 */
#include "device_printf.h"

#include <stdatomic.h>
#include <unistd.h>

#include "fake_driver.h"
#include "fence.h"
#include "stream_state.h"

static atomic_uint waits, event_waits, stream_waits;

static CUresult make_event(CUevent *ret_event, unsigned flags)
{
    *ret_event = (CUevent)0x10;
    return CUDA_SUCCESS;
}

static CUresult use_event(CUevent event, CUstream stream)
{
    return CUDA_SUCCESS;
}

static CUresult end_event(CUevent event)
{
    return CUDA_SUCCESS;
}

static CUresult make_stream(CUstream *ret_stream, unsigned flags, int priority)
{
    *ret_stream = (CUstream)0x20;
    return CUDA_SUCCESS;
}

static CUresult wait_in_stream(CUstream stream, CUevent event, unsigned flags)
{
    waits++;
    return CUDA_SUCCESS;
}

static CUresult wait_for_event(CUevent event)
{
    event_waits++;
    return CUDA_SUCCESS;
}

static CUresult wait_for_stream(CUstream stream)
{
    stream_waits++;
    return CUDA_SUCCESS;
}

static CUresult enter(CUcontext context)
{
    return CUDA_SUCCESS;
}

/* Two threads use the driver here, so nothing writes the trace. */
static struct stream *prepare(struct fixture *fixture)
{
    struct stream *stream = fixture_stream(fixture, 1, CU_STREAM_NON_BLOCKING);

    driver.cuEventCreate = make_event;
    driver.cuEventRecord = use_event;
    driver.cuEventQuery = end_event;
    driver.cuEventDestroy_v2 = end_event;
    driver.cuEventSynchronize = wait_for_event;
    driver.cuStreamCreateWithPriority = make_stream;
    driver.cuStreamWaitEvent = wait_in_stream;
    driver.cuStreamSynchronize = wait_for_stream;
    driver.cuCtxSetCurrent = enter;
    waits = event_waits = stream_waits = 0;
    return stream;
}

static void print_and_fence(struct fixture *fixture, struct stream *stream)
{
    assert_int_equal(device_printf_begin(stream), CUDA_SUCCESS);
    device_printf_end(stream);
    assert_true(fence_write(stream, 5) == CUDA_SUCCESS);
    for (int i = 0; i < 60000 && !fence_reached(stream, 5); i++)
        usleep(1000);
    assert_true(fence_reached(stream, 5));
    device_printf_forget(fixture->session);
    assert_false(fences_are_deferred(fixture->session));
}

static void fences_come_behind_the_output(void **state)
{
    struct fixture *fixture = *state;

    print_and_fence(fixture, prepare(fixture));
    assert_true(stream_waits > 0 && waits == stream_waits);
}

/* Work that is put into a stream may be queued behind a stream that waits for its client, and that
 * waits until the client sees a fence of this thread's. */
static void nothing_is_queued_while_streams_wait_for_the_host(void **state)
{
    struct fixture *fixture = *state;
    struct stream *stream = prepare(fixture);

    fixture->session->streams->has_host_waits = true;
    print_and_fence(fixture, stream);
    assert_true(stream_waits > 0 && event_waits == stream_waits);
    assert_int_equal(waits, 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(fences_come_behind_the_output),
        CASE(nothing_is_queued_while_streams_wait_for_the_host),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
