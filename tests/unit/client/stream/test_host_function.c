/* SPDX-License-Identifier: Apache-2.0 */
/* Host functions: when they run, what the stream waits for meanwhile, and what errors do. */
#include "channel_server.h"
#include "host_function.h"

#include <time.h>

#include "client_fixture.h"
#include "client_prototypes.h"
#include "clock.h"
#include "managed_hooks.h"

/* Far more than a caller needs until it waits. */
#define CLOSE_TIMEOUT_NS (20 * NS_PER_SEC)

static struct {
    uint32_t calls; /* atomic */
    uint32_t error; /* of a callback */
    uint32_t pulls; /* of managed variables */
} seen;

static void count_call(void *user)
{
    __atomic_add_fetch(&seen.calls, 1, __ATOMIC_ACQ_REL);
}

/* Takes long enough that a caller that does not wait is seen. */
static void count_slowly(void *user)
{
    usleep(50000);
    count_call(user);
}

static void CUDA_CB record_error(CUstream stream, CUresult error, void *user)
{
    seen.error = error;
    count_call(user);
}

static uint32_t calls(void)
{
    return __atomic_load_n(&seen.calls, __ATOMIC_ACQUIRE);
}

static void wait_for_calls(uint32_t count)
{
    while (calls() < count)
        usleep(1000);
}

static int setup(void **state)
{
    memset(&seen, 0, sizeof(seen));
    managed_in_use = 0;
    return fixture_setup(state);
}

static void test_runs_behind_the_fence_and_ends_the_host_wait(void **state)
{
    struct stream *stream = fixture_stream(CU_STREAM_NON_BLOCKING);
    struct wire_cuLaunchHostFunc in;

    assert_int_equal(client_cuLaunchHostFunc((CUstream)stream->handle, count_call, NULL),
                     CUDA_SUCCESS);
    fixture_expect(cuLaunchHostFunc, &in);
    assert_int_equal(in.hStream, stream->handle);
    assert_int_equal(in.host_wait_word, stream->word);
    usleep(20000);
    assert_int_equal(calls(), 0);
    assert_int_not_equal(fixture.host_wait_words[in.host_wait_word], in.host_wait_seq);
    fixture.fences[stream->word] = in.seq;
    wait_for_calls(1);
    while (fixture.host_wait_words[in.host_wait_word] != in.host_wait_seq)
        usleep(1000);
}

static void test_functions_of_one_stream_keep_their_order(void **state)
{
    struct stream *stream = fixture_stream(CU_STREAM_NON_BLOCKING);
    struct wire_cuLaunchHostFunc first, second;

    assert_int_equal(host_function_queue(stream, count_slowly, NULL), CUDA_SUCCESS);
    assert_int_equal(host_function_queue(stream, count_call, NULL), CUDA_SUCCESS);
    fixture_expect(cuLaunchHostFunc, &first);
    fixture_expect(cuLaunchHostFunc, &second);
    assert_int_equal(second.host_wait_seq, first.host_wait_seq + 1);
    fixture.fences[stream->word] = first.seq;
    wait_for_calls(1);
    usleep(20000);
    assert_int_equal(calls(), 1);
    fixture.fences[stream->word] = second.seq;
    wait_for_calls(2);
}

static void count_pull(void)
{
    seen.pulls++;
}

static void push_nothing(struct stream *stream)
{
}

static void use_managed_variables(void)
{
    managed_hooks = (struct managed_hooks){.push = push_nothing, .pull = count_pull};
    managed_in_use = 1;
}

/* Only the caller can bring managed variables up to date, so it waits for the function itself. */
static void test_caller_waits_where_there_are_managed_variables(void **state)
{
    struct stream *stream = fixture_stream(CU_STREAM_NON_BLOCKING);

    use_managed_variables();
    assert_int_equal(host_function_queue(stream, count_slowly, NULL), CUDA_SUCCESS);
    assert_int_equal(calls(), 1);
    assert_int_equal(seen.pulls, 1);
    fixture_expect_nothing();
    managed_in_use = 0;
}

/* As a thread does that moves the client. */
static void close_library(void *ret_closed)
{
    *(bool *)ret_closed = call_close(CLOSE_TIMEOUT_NS);
    call_open();
}

static void test_waiting_caller_is_parked(void **state)
{
    struct stream *stream = fixture_stream(CU_STREAM_NON_BLOCKING);
    bool closed = false;

    use_managed_variables();
    assert_int_equal(host_function_queue(stream, close_library, &closed), CUDA_SUCCESS);
    assert_true(closed);
    managed_in_use = 0;
}

static void test_one_without_a_stream_runs_behind_its_fence(void **state)
{
    struct stream *stream = fixture_stream(CU_STREAM_NON_BLOCKING);
    const struct fence fence = stream_fence_at(stream, 1);

    host_function_when(fence, count_call, NULL);
    usleep(20000);
    assert_int_equal(calls(), 0);
    fixture.fences[stream->word] = 1;
    wait_for_calls(1);
}

static void test_lost_context_skips_functions_and_reports_to_callbacks(void **state)
{
    struct stream *stream = fixture_stream(CU_STREAM_NON_BLOCKING);
    CUstream handle = (CUstream)stream->handle;

    assert_int_equal(client_cuLaunchHostFunc(handle, count_call, NULL), CUDA_SUCCESS);
    assert_int_equal(client_cuStreamAddCallback(handle, record_error, NULL, 0), CUDA_SUCCESS);
    channel_server_fail(fixture.server, CUDA_ERROR_ILLEGAL_ADDRESS);
    wait_for_calls(1);
    usleep(20000);
    assert_int_equal(calls(), 1);
    assert_int_equal(seen.error, CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void test_wrong_arguments(void **state)
{
    struct stream *stream = fixture_stream(CU_STREAM_NON_BLOCKING);
    CUstream handle = (CUstream)stream->handle;

    assert_int_equal(client_cuLaunchHostFunc(handle, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(client_cuStreamAddCallback(handle, NULL, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(client_cuStreamAddCallback(handle, record_error, NULL, 1),
                     CUDA_ERROR_INVALID_VALUE);
    fixture_expect_nothing();
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_runs_behind_the_fence_and_ends_the_host_wait),
        CASE(test_functions_of_one_stream_keep_their_order),
        CASE(test_caller_waits_where_there_are_managed_variables),
        CASE(test_waiting_caller_is_parked),
        CASE(test_one_without_a_stream_runs_behind_its_fence),
        CASE(test_lost_context_skips_functions_and_reports_to_callbacks),
        CASE(test_wrong_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
