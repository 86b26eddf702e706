/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends what the streams of a client that has gone wait for, in rounds until all streams are idle. A
 * stream is held by the first of its waits that is not over. So the server writes only those, and a
 * bounded number in each round, because a client may have left a million waits.
 */
#include "host_wait.h"

#include <stdatomic.h>

#include "host_wait_record.h"
#include "memory.h"
#include "stream_state.h"
#include "window.h"

/* How often all host-wait words are ended plainly, before it is assumed that some waits exclude
 * each other. */
#define PLAIN_ROUNDS 4u

#define WRITES_MAX 64u /* in one round */

/* A value that ends the wait, whatever the word holds: NOR wants a bit that neither side has. */
static uint64_t value_that_ends(const struct host_wait *wait)
{
    return wait->flags == CU_STREAM_WAIT_VALUE_NOR ? 0 : wait->value;
}

/* The GPU writes it, on a stream that never waits, because the word may be in device memory. */
static void write_awaited(struct session *session, const struct host_wait *wait)
{
    uint64_t value = value_that_ends(wait);

    /* It may have been given back, and belong to another client by now. */
    if (!memory_covers(session, wait->address, wait->wide ? 8 : 4) ||
        session_enter(session, wait->device) != CUDA_SUCCESS)
        return;
    if (wait->wide)
        driver.cuStreamWriteValue64_v2(wait->device->watch, wait->address, value, 0);
    else
        driver.cuStreamWriteValue32_v2(wait->device->watch, wait->address, (uint32_t)value, 0);
}

/* A client may make streams wait for values of one word that are more than half a circle apart:
 * then no value ends all waits. A quarter of a circle further in each round, every wait ends in
 * one. */
static void release_host_wait_words(struct session *session, unsigned round)
{
    uint32_t turn = round > PLAIN_ROUNDS ? (round - PLAIN_ROUNDS) << 30 : 0;

    for (uint32_t word = 0; word < GPU_REGION_HOST_WAITS; word++) {
        uint32_t seq = session->streams->host_wait_seq[word] + turn;
        if (turn || (int32_t)(seq - host_wait_word_load(session, word)) > 0)
            atomic_store_explicit(window_host_wait_word(session->window, word), seq,
                                  memory_order_release);
    }
}

/* Forgets what is over, and marks the first wait of each stream. Returns how many those are. */
static unsigned mark_first_of_each_stream(struct session *session)
{
    uint64_t seen[GPU_REGION_FENCES / 64] = {0};
    unsigned count = 0;

    list_for_each_safe (struct host_wait, wait, &session->streams->host_waits, link) {
        uint64_t *group = &seen[wait->stream_word / 64], bit = 1ull << wait->stream_word % 64;

        wait->is_first = false;
        if (*group & bit)
            continue;
        if (host_wait_is_over(wait)) {
            host_wait_forget(session, wait);
            continue;
        }
        *group |= bit;
        wait->is_first = true;
        count++;
    }
    return count;
}

/* Writes for those first waits whose numbers are in [from, to). */
static void write_some(struct session *session, unsigned from, unsigned to)
{
    unsigned number = 0;

    list_for_each (struct host_wait, wait, &session->streams->host_waits, link) {
        if (!wait->is_first)
            continue;
        if (number >= from && number < to)
            write_awaited(session, wait);
        number++;
    }
}

/* Two streams may wait for different values of one word. The last one that is written stays until
 * the next round, so each becomes the last in turn. */
bool host_waits_release_all(struct session *session)
{
    unsigned before = session->streams->host_wait_count;
    unsigned round = session->streams->release_rounds++;
    unsigned count = mark_first_of_each_stream(session);
    unsigned writes = count < WRITES_MAX ? count : WRITES_MAX;
    unsigned from = count ? round % count : 0;
    unsigned beyond = from + writes > count ? from + writes - count : 0;

    release_host_wait_words(session, round);
    write_some(session, from, from + writes - beyond);
    write_some(session, 0, beyond);
    return session->streams->host_wait_count < before;
}
