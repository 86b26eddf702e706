/* SPDX-License-Identifier: Apache-2.0 */
/* What streams wait for is written when their client is gone. */
#include "fake_driver.h"
#include "host_wait.h"
#include "host_wait_record.h"
#include "memory.h"
#include "stream_state.h"

/* Waits are over whose events have numbers up to this. */
static uintptr_t passed;

static CUresult query_event(CUevent event)
{
    return (uintptr_t)event <= passed ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

static unsigned writes;

static CUresult count_write(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags)
{
    *(uint32_t *)address = value;
    writes++;
    return CUDA_SUCCESS;
}

static int setup(void **state)
{
    int error = fixture_setup(state);

    passed = 0;
    driver.cuEventQuery = query_event;
    return error;
}

static CUresult callback(struct fixture *fixture, struct stream *stream, uint32_t seq,
                         uint32_t word, uint32_t host_wait_seq)
{
    const struct wire_cuLaunchHostFunc in = {
        .seq = seq, .host_wait_word = word, .host_wait_seq = host_wait_seq};

    return serve_cuLaunchHostFunc(fixture->session, &in, stream);
}

static void callback_is_a_fence_and_a_host_wait(void **state)
{
    struct fixture *fixture = *state;
    struct stream *stream = fixture_stream(fixture, 1, CU_STREAM_NON_BLOCKING);

    fake_trace();
    assert_int_equal(callback(fixture, stream, 3, 8, 1), CUDA_SUCCESS);
    assert_string_equal(fake_trace(), "write s1 3; event e1; event e2; record e1 s1; wait s1 1; "
                                      "record e2 s1; ");
    assert_int_equal(callback(fixture, stream, 4, 4096, 1), CUDA_ERROR_INVALID_VALUE);
    assert_string_equal(fake_trace(), "write s1 4; "); /* a thread may wait for the fence */
}

static void host_waits_are_ended(void **state)
{
    struct fixture *fixture = *state;
    struct stream *stream = fixture_stream(fixture, 1, CU_STREAM_NON_BLOCKING);

    *window_host_wait_word(&fixture->window, 8) = 0xfffffffe;
    callback(fixture, stream, 1, 8, 2); /* numbers wrap around */
    *window_host_wait_word(&fixture->window, 9) = 5;
    callback(fixture, stream, 2, 9, 4); /* it is written already */
    host_waits_release_all(fixture->session);
    assert_int_equal(*window_host_wait_word(&fixture->window, 8), 2);
    assert_int_equal(*window_host_wait_word(&fixture->window, 9), 5);
    assert_int_equal(*window_host_wait_word(&fixture->window, 10), 0);
}

static CUresult wait_for(struct fixture *fixture, struct stream *stream, uint32_t *word,
                         uint32_t value, uint32_t flags)
{
    const struct wire_cuStreamWaitValue32_v2 in = {
        .addr = (uintptr_t)word, .value = value, .flags = flags};

    return serve_cuStreamWaitValue32_v2(fixture->session, &in, stream);
}

static void allow(struct fixture *fixture, void *address, uint64_t size)
{
    const struct granule own = {
        .kind = GRANULE_SHARED, .address = (uintptr_t)address, .size = size, .fd = -1};

    memory_allow(fixture->session, &own);
}

static void awaited_values_are_written(void **state)
{
    struct fixture *fixture = *state;
    struct stream *stream = fixture_stream(fixture, 1, CU_STREAM_NON_BLOCKING);
    struct stream *second = fixture_stream(fixture, 2, CU_STREAM_NON_BLOCKING);
    struct stream *third = fixture_stream(fixture, 3, CU_STREAM_NON_BLOCKING);
    static _Alignas(8) uint32_t words[4];

    allow(fixture, words, sizeof(words));
    words[1] = UINT32_MAX;
    assert_int_equal(wait_for(fixture, stream, &words[0], 9, CU_STREAM_WAIT_VALUE_GEQ),
                     CUDA_SUCCESS);
    assert_int_equal(wait_for(fixture, second, &words[1], 6, CU_STREAM_WAIT_VALUE_NOR),
                     CUDA_SUCCESS);
    assert_int_equal(wait_for(fixture, third, &words[2], 4, CU_STREAM_WAIT_VALUE_AND),
                     CUDA_SUCCESS);
    assert_int_equal(wait_for(fixture, stream, &words[4], 1, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(wait_for(fixture, stream, (uint32_t *)((char *)words + 2), 1, 0),
                     CUDA_ERROR_INVALID_VALUE);
    host_waits_release_all(fixture->session);
    assert_int_equal(words[0], 9);
    assert_int_not_equal(~(words[1] | 6), 0);
    assert_int_not_equal(words[2] & 4, 0);
    assert_int_equal(words[3], 0);
    host_waits_forget_all(fixture->session);
    assert_int_equal(fixture->session->streams->host_wait_count, 0);
    memory_release_all(fixture->session);
}

static struct host_wait *nth_wait(struct fixture *fixture, unsigned n)
{
    list_for_each (struct host_wait, wait, &fixture->session->streams->host_waits, link) {
        if (n-- == 0)
            return wait;
    }
    return NULL;
}

/* A stream is held by its first wait that is not over; to write for the others is in vain. */
static void one_value_is_written_for_each_stream(void **state)
{
    struct fixture *fixture = *state;
    struct stream *stream = fixture_stream(fixture, 1, CU_STREAM_NON_BLOCKING);
    static _Alignas(8) uint32_t words[800];

    allow(fixture, words, sizeof(words));
    for (unsigned i = 0; i < 800; i++)
        assert_int_equal(wait_for(fixture, stream, &words[i], i + 1, CU_STREAM_WAIT_VALUE_EQ),
                         CUDA_SUCCESS);
    driver.cuStreamWriteValue32_v2 = count_write;
    writes = 0;
    for (unsigned round = 0; round < 10; round++)
        assert_false(host_waits_release_all(fixture->session));
    assert_int_equal(writes, 10);
    assert_int_equal(words[0], 1);
    assert_int_equal(words[1], 0);
    passed = (uintptr_t)nth_wait(fixture, 299)->passed;
    assert_true(host_waits_release_all(fixture->session));
    assert_int_equal(fixture->session->streams->host_wait_count, 500);
    assert_int_equal(words[300], 301);
    assert_int_equal(words[301], 0);
    host_waits_forget_all(fixture->session);
    memory_release_all(fixture->session);
}

/* However many streams a client leaves, a round has an end, and each stream has its turn. */
static void a_round_is_bounded(void **state)
{
    struct fixture *fixture = *state;
    static _Alignas(8) uint32_t words[200];

    allow(fixture, words, sizeof(words));
    for (unsigned i = 0; i < 200; i++)
        assert_int_equal(wait_for(fixture, fixture_stream(fixture, i + 1, CU_STREAM_NON_BLOCKING),
                                  &words[i], 1, CU_STREAM_WAIT_VALUE_EQ),
                         CUDA_SUCCESS);
    driver.cuStreamWriteValue32_v2 = count_write;
    writes = 0;
    host_waits_release_all(fixture->session);
    assert_int_equal(writes, 64);
    for (unsigned round = 1; round < 200; round++)
        host_waits_release_all(fixture->session);
    for (unsigned i = 0; i < 200; i++)
        assert_int_equal(words[i], 1);
    host_waits_forget_all(fixture->session);
    memory_release_all(fixture->session);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(callback_is_a_fence_and_a_host_wait),
        CASE(host_waits_are_ended),
        CASE(awaited_values_are_written),
        CASE(one_value_is_written_for_each_stream),
        CASE(a_round_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
