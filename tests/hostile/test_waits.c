/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams that wait for values that are never written: their client goes, and all it had is given
 * back.
 */
#include <string.h>

#include "cuda_flags.h"
#include "hostile.h"

#define GRANULE (64u << 20)

/* A client with two streams, and words in memory of the device. */
struct waiter {
    struct peer peer;
    uint64_t stream[2], memory, before;
};

static void begin(struct waiter *waiter)
{
    waiter->before = free_memory();
    assert_true(peer_attach(&waiter->peer, hostile.server.socket));
    for (unsigned i = 0; i < 2; i++)
        waiter->stream[i] = peer_make_stream(&waiter->peer, i + 1);
    assert_int_equal(peer_make_granule(&waiter->peer, GRANULE, &waiter->memory), CUDA_SUCCESS);
}

static void wait_for(struct waiter *waiter, unsigned stream, uint64_t word, uint32_t value,
                     uint32_t flags)
{
    const struct wire_cuStreamWaitValue32_v2 in = {.hStream = waiter->stream[stream],
                                                   .addr = waiter->memory + 4 * word,
                                                   .value = value,
                                                   .flags = flags};

    channel_lock(&waiter->peer.channel);
    wire_cuStreamWaitValue32_v2(&waiter->peer.channel, &in);
    channel_unlock(&waiter->peer.channel);
}

static void write_word(struct waiter *waiter, uint64_t word, uint32_t value)
{
    const struct wire_cuStreamWriteValue32_v2 in = {
        .hStream = waiter->stream[0], .addr = waiter->memory + 4 * word, .value = value};

    channel_lock(&waiter->peer.channel);
    wire_cuStreamWriteValue32_v2(&waiter->peer.channel, &in);
    channel_unlock(&waiter->peer.channel);
}

static void goes_and_leaves_nothing(struct waiter *waiter)
{
    peer_leave(&waiter->peer);
    assert_true(free_memory_comes_back_to(waiter->before));
}

static void values_that_nothing_satisfies(void **state)
{
    struct waiter waiter;

    (void)state;
    begin(&waiter);
    wait_for(&waiter, 0, 0, 0, CU_STREAM_WAIT_VALUE_AND);
    assert_int_equal(hostile_deferred(&waiter.peer), CUDA_ERROR_INVALID_VALUE);
    wait_for(&waiter, 1, 0, UINT32_MAX, CU_STREAM_WAIT_VALUE_NOR);
    assert_int_equal(hostile_deferred(&waiter.peer), CUDA_ERROR_INVALID_VALUE);
    goes_and_leaves_nothing(&waiter);
}

static void two_values_of_one_word(void **state)
{
    struct waiter waiter;

    (void)state;
    begin(&waiter);
    write_word(&waiter, 0, 1);
    for (uint32_t i = 0; i < 8; i++) {
        wait_for(&waiter, 0, 0, 5 + 4 * i, CU_STREAM_WAIT_VALUE_EQ);
        wait_for(&waiter, 1, 0, 7 + 4 * i, CU_STREAM_WAIT_VALUE_EQ);
    }
    assert_int_equal(hostile_deferred(&waiter.peer), CUDA_SUCCESS);
    goes_and_leaves_nothing(&waiter);
}

/* The first is still there when a thousand later ones are over. */
static void more_waits_than_are_remembered(void **state)
{
    struct waiter waiter;

    (void)state;
    begin(&waiter);
    write_word(&waiter, 0, 0);
    write_word(&waiter, 1, 0);
    wait_for(&waiter, 0, 0, 5, CU_STREAM_WAIT_VALUE_EQ);
    for (unsigned i = 0; i < 1500; i++)
        wait_for(&waiter, 1, 1, 0, CU_STREAM_WAIT_VALUE_GEQ);
    assert_int_equal(hostile_deferred(&waiter.peer), CUDA_SUCCESS);
    goes_and_leaves_nothing(&waiter);
}

static void more_waits_than_are_allowed(void **state)
{
    struct waiter waiter;

    (void)state;
    begin(&waiter);
    write_word(&waiter, 0, 0);
    for (unsigned i = 0; i < 1500; i++)
        wait_for(&waiter, i % 2, 0, 5, CU_STREAM_WAIT_VALUE_EQ);
    assert_int_equal(hostile_deferred(&waiter.peer), CUDA_ERROR_OUT_OF_MEMORY);
    goes_and_leaves_nothing(&waiter);
}

static void call_back(struct waiter *waiter, unsigned stream, uint32_t seq)
{
    const struct wire_cuLaunchHostFunc in = {.hStream = waiter->stream[stream],
                                             .seq = stream + 1,
                                             .host_wait_word = 3,
                                             .host_wait_seq = seq};

    channel_lock(&waiter->peer.channel);
    wire_cuLaunchHostFunc(&waiter->peer.channel, &in);
    channel_unlock(&waiter->peer.channel);
}

static void values_half_a_circle_apart(void **state)
{
    struct waiter waiter;

    (void)state;
    begin(&waiter);
    call_back(&waiter, 0, 5);
    call_back(&waiter, 1, 5 + 0x80000001u);
    assert_int_equal(hostile_deferred(&waiter.peer), CUDA_SUCCESS);
    goes_and_leaves_nothing(&waiter);
}

/* A wait in memory that has gone would never end. */
static void memory_that_is_awaited(void **state)
{
    struct waiter waiter;

    (void)state;
    begin(&waiter);
    const struct wire_fnGranuleRelease in = {.address = waiter.memory};
    write_word(&waiter, 0, 0);
    wait_for(&waiter, 1, 0, 5, CU_STREAM_WAIT_VALUE_EQ);
    channel_lock(&waiter.peer.channel);
    wire_fnGranuleRelease(&waiter.peer.channel, &in);
    channel_unlock(&waiter.peer.channel);
    assert_int_equal(hostile_deferred(&waiter.peer), CUDA_ERROR_INVALID_VALUE);
    goes_and_leaves_nothing(&waiter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOSTILE_CASE(values_that_nothing_satisfies),  HOSTILE_CASE(two_values_of_one_word),
        HOSTILE_CASE(more_waits_than_are_remembered), HOSTILE_CASE(more_waits_than_are_allowed),
        HOSTILE_CASE(values_half_a_circle_apart),     HOSTILE_CASE(memory_that_is_awaited),
    };

    return HOSTILE_MAIN(tests);
}
