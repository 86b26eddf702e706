/* SPDX-License-Identifier: Apache-2.0 */
/* Fence words: who has one, when it is idle, and how a wait ends. */
#include "channel_server.h"
#include "client_fence.h"

#include <pthread.h>

#include "client_fixture.h"

static void test_numbers_may_wrap(void **state)
{
    assert_true(fence_reached(5, 5));
    assert_true(fence_reached(6, 5));
    assert_false(fence_reached(4, 5));
    assert_true(fence_reached(2, UINT32_MAX));
    assert_false(fence_reached(UINT32_MAX, 2));
}

static void test_zero_is_never_issued(void **state)
{
    uint32_t word = fence_word_take(0, 1, 1);

    for (uint32_t expected = 1; expected < 4; expected++)
        assert_int_equal(fence_issue(word), expected);
    assert_int_equal(fence_issued(word), 3);
}

static void test_packing_keeps_both_halves(void **state)
{
    const struct fence fence = {.word = 0x12345678, .seq = 0x9abcdef0};
    const struct fence again = fence_unpack(fence_pack(fence));

    assert_int_equal(again.word, fence.word);
    assert_int_equal(again.seq, fence.seq);
    assert_true(fence_passed(fence_unpack(fence_pack(FENCE_OF_NOTHING))));
}

static void test_word_is_reused_when_its_last_number_has_arrived(void **state)
{
    uint32_t words[FIXTURE_WORDS];

    for (unsigned i = 0; i < FIXTURE_WORDS; i++)
        words[i] = fence_word_take(0, 1, 1);
    assert_int_equal(fence_word_take(0, 1, 1), FENCE_NONE);
    fence_issue(words[2]);
    fence_word_give(words[2]);
    assert_false(fence_orphans_passed());
    assert_int_equal(fence_word_take(0, 1, 1), FENCE_NONE);
    fixture.fences[words[2]] = 1;
    assert_true(fence_orphans_passed());
    assert_int_equal(fence_word_take(0, 1, 1), words[2]);
}

static void test_device_is_idle_when_all_its_words_are(void **state)
{
    uint32_t here = fence_word_take(0, 1, 1), there = fence_word_take(1, 1, 1);

    fence_issue(there);
    assert_true(fence_device_idle(0));
    assert_false(fence_device_idle(1));
    fence_issue(here);
    assert_false(fence_word_idle(here));
    fixture.fences[here] = 1;
    assert_true(fence_word_idle(here));
    assert_int_equal(fence_wait_device(0), CUDA_SUCCESS);
}

static void *arrive(void *word);

static void test_context_waits_for_streams_that_are_gone(void **state)
{
    uint32_t green = fence_word_take(0, 8, 7), other = fence_word_take(0, 9, 9);
    pthread_t thread;

    fence_issue(green);
    fence_issue(other);
    fence_word_give(other);
    assert_int_equal(fence_wait_orphans(7), CUDA_SUCCESS); /* is still there */
    fence_word_give(green);
    assert_int_equal(pthread_create(&thread, NULL, arrive, &green), 0);
    assert_int_equal(fence_wait_orphans(7), CUDA_SUCCESS);
    assert_true(fence_word_idle(green));
    assert_false(fence_word_idle(other));
    pthread_join(thread, NULL);
}

static void *arrive(void *word)
{
    usleep(20000);
    fixture.fences[*(uint32_t *)word] = 1;
    return NULL;
}

static void check_wait(enum fence_wait_mode mode, uint64_t stream)
{
    uint32_t word = fence_word_take(0, 1, 1);
    const struct fence fence = {word, fence_issue(word)};
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, arrive, &word), 0);
    assert_int_equal(fence_wait(fence, stream, mode), CUDA_SUCCESS);
    assert_true(fence_passed(fence));
    pthread_join(thread, NULL);
}

static void test_wait_ends_when_the_number_arrives(void **state)
{
    check_wait(FENCE_SPIN, 0);
    check_wait(FENCE_SLEEP, 0);
    fixture_expect_nothing();
}

/* The number arrives once the client has asked. */
static void *arrive_when_asked(void *word)
{
    const struct ring_message *message;
    struct wire_fnWake in;

    while (fixture_next(&message) != WIRE_fnWake)
        usleep(1000);
    assert_true(decode_fnWake(message, message->size, &in));
    fixture.fences[*(uint32_t *)word] = in.seq;
    return NULL;
}

static void test_long_wait_asks_to_be_woken(void **state)
{
    const struct stream *stream = fixture_stream(CU_STREAM_NON_BLOCKING);
    uint32_t word = fence_word_take(0, 1, 1);
    const struct fence fence = {word, fence_issue(word)};
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, arrive_when_asked, &word), 0);
    assert_int_equal(fence_wait(fence, stream->handle, FENCE_SLEEP), CUDA_SUCCESS);
    pthread_join(thread, NULL);
}

/* The number arrives once the client has said that it waits. */
static void *arrive_when_told(void *word)
{
    const struct ring_message *message;
    struct wire_fnHold in;

    while (fixture_next(&message) != WIRE_fnHold)
        usleep(1000);
    assert_true(decode_fnHold(message, message->size, &in));
    fixture.fences[*(uint32_t *)word] = in.seq;
    return NULL;
}

/* On a busy machine a wait may last so long that the client asks for a wake as well. */
static void expect_nothing_but_wakes(void)
{
    const struct ring_message *message;

    for (uint32_t op = fixture_next(&message); op; op = fixture_next(&message))
        assert_int_equal(op, WIRE_fnWake);
}

static void test_wait_is_told_where_the_server_wants_that(void **state)
{
    const struct stream *stream = fixture_stream(CU_STREAM_NON_BLOCKING);
    uint32_t word = fence_word_take(0, 1, 1);
    const struct fence fence = {word, fence_issue(word)};
    pthread_t thread;

    channel_server_want_hold(fixture.server, true);
    assert_int_equal(pthread_create(&thread, NULL, arrive_when_told, &word), 0);
    assert_int_equal(fence_wait(fence, stream->handle, FENCE_SPIN), CUDA_SUCCESS);
    pthread_join(thread, NULL);
    assert_int_equal(fence_wait(fence, stream->handle, FENCE_SPIN), CUDA_SUCCESS);
    expect_nothing_but_wakes();
}

static void test_wait_ends_while_cpus_are_short(void **state)
{
    struct channel_load load = {.spin_ns = 1000, .yield_ns = UINT32_MAX};

    channel_server_put_load(fixture.server, load);
    check_wait(FENCE_SPIN, 0);
    load.yield_ns = 0;
    channel_server_put_load(fixture.server, load);
    check_wait(FENCE_SPIN, 0);
}

static void *arrive_soon(void *word)
{
    usleep(1000);
    fixture.fences[*(uint32_t *)word] = fence_issued(*(uint32_t *)word);
    return NULL;
}

/* Four waits are known then. */
static void test_fifth_wait_begins_with_a_sleep_while_cpus_are_short(void **state)
{
    uint32_t word = fence_word_take(0, 1, 1);
    pthread_t thread;

    channel_server_put_load(fixture.server, (struct channel_load){.spin_ns = 10000});
    for (unsigned i = 0; i < 6; i++) {
        const struct fence fence = {word, fence_issue(word)};

        assert_int_equal(pthread_create(&thread, NULL, arrive_soon, &word), 0);
        assert_int_equal(fence_wait(fence, 0, FENCE_SPIN), CUDA_SUCCESS);
        assert_true(fence_passed(fence));
        pthread_join(thread, NULL);
    }
    channel_server_put_load(fixture.server, (struct channel_load){0});
}

/* Another thread may destroy the stream meanwhile; the server would refuse the command. */
static void test_stream_that_is_gone_is_not_named(void **state)
{
    const uint64_t stream = fixture_stream(CU_STREAM_NON_BLOCKING)->handle;

    handles_remove(&client->handles, WIRE_STREAM, stream);
    check_wait(FENCE_SLEEP, stream);
    fixture_expect_nothing();
}

static void test_wait_ends_with_the_servers_error(void **state)
{
    uint32_t word = fence_word_take(0, 1, 1);
    const struct fence fence = {word, fence_issue(word)};

    channel_server_fail(fixture.server, CUDA_ERROR_ECC_UNCORRECTABLE);
    assert_int_equal(fence_wait(fence, 0, FENCE_SPIN), CUDA_ERROR_ECC_UNCORRECTABLE);
    assert_int_equal(fence_wait(fence, 0, FENCE_SLEEP), CUDA_ERROR_ECC_UNCORRECTABLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_CASE(test_numbers_may_wrap),
        FIXTURE_CASE(test_zero_is_never_issued),
        FIXTURE_CASE(test_packing_keeps_both_halves),
        FIXTURE_CASE(test_word_is_reused_when_its_last_number_has_arrived),
        FIXTURE_CASE(test_device_is_idle_when_all_its_words_are),
        FIXTURE_CASE(test_context_waits_for_streams_that_are_gone),
        FIXTURE_CASE(test_wait_ends_when_the_number_arrives),
        FIXTURE_CASE(test_long_wait_asks_to_be_woken),
        FIXTURE_CASE(test_wait_is_told_where_the_server_wants_that),
        FIXTURE_CASE(test_wait_ends_while_cpus_are_short),
        FIXTURE_CASE(test_fifth_wait_begins_with_a_sleep_while_cpus_are_short),
        FIXTURE_CASE(test_stream_that_is_gone_is_not_named),
        FIXTURE_CASE(test_wait_ends_with_the_servers_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
