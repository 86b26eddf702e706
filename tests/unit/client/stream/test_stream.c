/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: what is sent, when a fence is needed, and when a stream is known to be done. */
#include "channel_server.h"
#include "client_stream.h"

#include "client_fixture.h"
#include "client_prototypes.h"
#include "stream_commands.h"

static void put_work(struct stream *stream)
{
    stream_begin(stream);
    stream_end();
}

static void test_fence_is_sent_once_for_work(void **state)
{
    struct stream *stream = fixture_stream(CU_STREAM_NON_BLOCKING);
    struct fence first, second;
    struct wire_fnFence in;

    put_work(stream);
    put_work(stream);
    assert_int_equal(stream_fence(stream, &first), CUDA_SUCCESS);
    fixture_expect(fnFence, &in);
    assert_int_equal(in.hStream, stream->handle);
    assert_int_equal(in.seq, first.seq);
    assert_int_equal(stream_fence(stream, &second), CUDA_SUCCESS);
    assert_int_equal(second.seq, first.seq);
    fixture_expect_nothing();
}

static void test_command_with_a_fence_needs_no_other(void **state)
{
    struct stream *stream = fixture_stream(CU_STREAM_NON_BLOCKING);
    struct fence fence;
    uint32_t seq = stream_begin_fenced(stream);

    stream_end();
    assert_int_equal(stream_fence(stream, &fence), CUDA_SUCCESS);
    assert_int_equal(fence.seq, seq);
    fixture_expect_nothing();
}

static void test_query_follows_the_fence_word(void **state)
{
    struct stream *stream = fixture_stream(CU_STREAM_NON_BLOCKING);
    CUstream handle = (CUstream)stream->handle;

    assert_int_equal(client_cuStreamQuery(handle), CUDA_SUCCESS);
    put_work(stream);
    assert_int_equal(client_cuStreamQuery(handle), CUDA_ERROR_NOT_READY);
    fixture_finish(stream);
    assert_int_equal(client_cuStreamQuery(handle), CUDA_SUCCESS);
}

static void test_legacy_fence_covers_blocking_streams(void **state)
{
    struct stream *blocking = fixture_stream(CU_STREAM_DEFAULT), *legacy;
    struct wire_cuStreamCreateWithPriority created;
    struct fence fence;
    struct wire_fnFence in;

    put_work(blocking);
    assert_int_equal(stream_enter(CU_STREAM_LEGACY, &legacy), CUDA_SUCCESS);
    fixture_expect(cuStreamCreateWithPriority, &created);
    assert_true(created.flags & WIRE_STREAM_LEGACY);
    assert_int_equal(stream_fence(legacy, &fence), CUDA_SUCCESS);
    fixture_expect(fnFence, &in);
    assert_int_equal(in.hStream, legacy->handle);
    assert_true(stream_lost_work(blocking, UINT64_MAX));
    fixture_finish(legacy);
    assert_false(stream_lost_work(blocking, UINT64_MAX));
}

static void test_work_that_was_not_read_is_not_lost(void **state)
{
    struct stream *stream = fixture_stream(CU_STREAM_NON_BLOCKING);
    uint64_t before = client->channel.sent;
    struct fence fence;

    put_work(stream);
    assert_int_equal(stream_fence(stream, &fence), CUDA_SUCCESS);
    assert_false(stream_lost_work(stream, before));
    assert_true(stream_lost_work(stream, client->channel.sent));
    fixture_finish(stream);
    assert_false(stream_lost_work(stream, client->channel.sent));
}

static void test_all_idle_counts_streams_that_are_gone(void **state)
{
    struct stream *stream = fixture_stream(CU_STREAM_NON_BLOCKING);
    uint32_t word = stream->word;

    assert_true(stream_all_idle_locked());
    put_work(stream);
    assert_false(stream_all_idle_locked());
    assert_int_equal(client_cuStreamDestroy_v2((CUstream)stream->handle), CUDA_SUCCESS);
    assert_false(stream_all_idle_locked());
    fixture.fences[word] = fence_issued(word);
    assert_true(stream_all_idle_locked());
}

static void test_destroying_sends_a_last_fence(void **state)
{
    struct stream *stream = fixture_stream(CU_STREAM_NON_BLOCKING);
    uint64_t handle = stream->handle;
    struct wire_cuStreamDestroy_v2 gone;
    struct wire_fnFence in;

    put_work(stream);
    assert_int_equal(client_cuStreamDestroy_v2((CUstream)handle), CUDA_SUCCESS);
    fixture_expect(fnFence, &in);
    fixture_expect(cuStreamDestroy_v2, &gone);
    assert_int_equal(gone.hStream, handle);
    assert_int_equal(client_cuStreamDestroy_v2((CUstream)handle), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(client_cuStreamQuery((CUstream)handle), CUDA_ERROR_INVALID_HANDLE);
}

static void test_priority_is_clamped(void **state)
{
    struct wire_cuStreamCreateWithPriority in;
    CUstream handle;
    int priority;

    assert_int_equal(client_cuStreamCreateWithPriority(&handle, CU_STREAM_NON_BLOCKING, -100),
                     CUDA_SUCCESS);
    fixture_expect(cuStreamCreateWithPriority, &in);
    assert_int_equal(in.priority, -5);
    assert_int_equal(client_cuStreamGetPriority(handle, &priority), CUDA_SUCCESS);
    assert_int_equal(priority, -5);
}

static void test_per_thread_stream_ends_with_its_thread(void **state)
{
    struct stream *stream;
    struct wire_cuStreamCreateWithPriority in;
    struct wire_cuStreamDestroy_v2 gone;

    assert_int_equal(stream_enter(CU_STREAM_PER_THREAD, &stream), CUDA_SUCCESS);
    fixture_expect(cuStreamCreateWithPriority, &in);
    thread_exit_hook(thread_self());
    fixture_expect(cuStreamDestroy_v2, &gone);
    assert_int_equal(gone.hStream, in.hStream);
}

static void test_streams_beyond_the_fence_words_are_refused(void **state)
{
    CUstream handle;

    for (unsigned i = 0; i < FIXTURE_WORDS; i++)
        assert_int_equal(client_cuStreamCreate(&handle, 0), CUDA_SUCCESS);
    assert_int_equal(client_cuStreamCreate(&handle, 0), CUDA_ERROR_OUT_OF_MEMORY);
}

static void test_deferred_error_is_reported_once(void **state)
{
    struct stream *stream = fixture_stream(CU_STREAM_NON_BLOCKING);

    channel_server_defer(fixture.server, CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(client_cuStreamSynchronize((CUstream)stream->handle),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(client_cuStreamSynchronize((CUstream)stream->handle), CUDA_SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_CASE(test_fence_is_sent_once_for_work),
        FIXTURE_CASE(test_command_with_a_fence_needs_no_other),
        FIXTURE_CASE(test_query_follows_the_fence_word),
        FIXTURE_CASE(test_legacy_fence_covers_blocking_streams),
        FIXTURE_CASE(test_work_that_was_not_read_is_not_lost),
        FIXTURE_CASE(test_all_idle_counts_streams_that_are_gone),
        FIXTURE_CASE(test_destroying_sends_a_last_fence),
        FIXTURE_CASE(test_priority_is_clamped),
        FIXTURE_CASE(test_per_thread_stream_ends_with_its_thread),
        FIXTURE_CASE(test_streams_beyond_the_fence_words_are_refused),
        FIXTURE_CASE(test_deferred_error_is_reported_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
