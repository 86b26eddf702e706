/* SPDX-License-Identifier: Apache-2.0 */
/* Captures: work on a capturing stream is not sent, and calls that would disturb it are refused. */
#include "client_capture.h"

#include "client_fixture.h"
#include "client_prototypes.h"
#include "graph_prototypes.h"

static void count_nothing(void *user)
{
}

static struct stream *begin(CUstreamCaptureMode mode)
{
    struct stream *stream = fixture_stream(CU_STREAM_NON_BLOCKING);

    assert_int_equal(graph_cuStreamBeginCapture_v2((CUstream)stream->handle, mode), CUDA_SUCCESS);
    return stream;
}

static void end(struct stream *stream, CUresult expected)
{
    CUgraph graph;

    assert_int_equal(graph_cuStreamEndCapture((CUstream)stream->handle, &graph), expected);
}

static void test_plain_streams_are_done_at_once(void **state)
{
    struct stream *stream = fixture_stream(CU_STREAM_NON_BLOCKING);
    CUresult result = CUDA_ERROR_UNKNOWN;

    assert_true(stream_is_plain(stream));
    assert_false(capture_takes_host(stream, count_nothing, NULL, &result));
    assert_int_equal(capture_check_stream(stream), CUDA_SUCCESS);
    assert_int_equal(capture_check_unsafe(), CUDA_SUCCESS);
}

static void test_captured_work_is_not_sent(void **state)
{
    struct stream *stream = begin(CU_STREAM_CAPTURE_MODE_RELAXED);

    assert_false(stream_is_plain(stream));
    assert_int_equal(client_cuLaunchHostFunc((CUstream)stream->handle, count_nothing, NULL),
                     CUDA_SUCCESS);
    fixture_expect_nothing();
    end(stream, CUDA_SUCCESS);
    assert_true(stream_is_plain(stream));
}

static void test_waiting_for_a_capturing_stream_is_refused(void **state)
{
    struct stream *stream = begin(CU_STREAM_CAPTURE_MODE_RELAXED);

    assert_int_equal(client_cuStreamSynchronize((CUstream)stream->handle),
                     CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_int_equal(client_cuStreamQuery((CUstream)stream->handle),
                     CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    end(stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

static void test_unsafe_calls_depend_on_the_mode(void **state)
{
    struct stream *relaxed = begin(CU_STREAM_CAPTURE_MODE_RELAXED), *global;
    struct context *context;

    assert_int_equal(context_enter_unsafe(&context), CUDA_SUCCESS);
    end(relaxed, CUDA_SUCCESS);
    global = begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    assert_int_equal(context_enter_unsafe(&context), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    end(global, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    assert_int_equal(context_enter_unsafe(&context), CUDA_SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_CASE(test_plain_streams_are_done_at_once),
        FIXTURE_CASE(test_captured_work_is_not_sent),
        FIXTURE_CASE(test_waiting_for_a_capturing_stream_is_refused),
        FIXTURE_CASE(test_unsafe_calls_depend_on_the_mode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
