/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients that write nonsense into the memory they share with the server.
 */
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hostile.h"
#include "region.h"

static void tail_that_jumps(void **state)
{
    const uint32_t jumps[] = {16, 4096, REGION_RING_BYTES, REGION_RING_BYTES + 16, 1u << 31, 7};
    struct peer peer;

    (void)state;
    for (unsigned i = 0; i < sizeof(jumps) / sizeof(jumps[0]); i++) {
        hostile_attach(&peer);
        atomic_fetch_add(&peer.channel.region->ring.tail, jumps[i]);
        assert_true(peer_is_cut_off(&peer));
        peer_leave(&peer);
    }
}

static void sizes_that_lie(void **state)
{
    const uint32_t sizes[] = {0, 1, 8, 15, 17, 65552, REGION_RING_BYTES, UINT32_MAX, 0x80000000u};
    struct peer peer;

    (void)state;
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        hostile_attach(&peer);
        struct region *region = peer.channel.region;
        struct ring_message *message = (void *)((unsigned char *)peer.channel.ring_data +
                                                (region->ring.tail & (REGION_RING_BYTES - 1)));
        message->size = sizes[i];
        message->kind = WIRE_fnFence;
        atomic_fetch_add(&region->ring.tail, 64);
        assert_true(peer_is_cut_off(&peer));
        peer_leave(&peer);
    }
}

/* Everything the client can write to, overwritten again and again while commands run. */
static void region_full_of_noise(void **state)
{
    uint64_t seed = 7;
    struct peer peer;

    (void)state;
    for (unsigned client = 0; client < 20; client++) {
        hostile_attach(&peer);
        unsigned char *bytes = (unsigned char *)peer.channel.region;
        for (unsigned i = 0; i < 20000; i++)
            bytes[unit_random(&seed) % sizeof(struct region)] = (unsigned char)unit_random(&seed);
        memset(peer.channel.ring_data, (int)unit_random(&seed), REGION_RING_BYTES);
        atomic_fetch_add(&peer.channel.region->ring.tail, 4096);
        peer_leave(&peer);
    }
}

/* Fence and host-wait words are the client's own: whatever it writes there, only it is misled. */
static void fences_full_of_noise(void **state)
{
    uint64_t seed = 8;
    struct peer peer;

    (void)state;
    hostile_attach(&peer);
    peer_make_stream(&peer, 0);
    for (unsigned i = 0; i < 100000; i++)
        peer.gpu[unit_random(&seed) % GPU_REGION_STAGING_OFFSET] =
            (unsigned char)unit_random(&seed);
    peer_leave(&peer);
}

static void assert_wiped(const struct peer *peer)
{
    for (uint64_t at = 0; at < peer->offer.gpu_size; at += 4096)
        assert_int_equal(peer->gpu[at], 0);
}

#define OTHERS_MAX 200u

/* The next client of the window must not see what the last one left. Who gets another window keeps
 * it, so that the one that was given back comes in the end, behind those that came back before. */
static void nothing_is_left_behind(void **state)
{
    static struct peer peer, others[OTHERS_MAX];
    unsigned count = 0;
    bool same = false;

    (void)state;
    hostile_attach(&peer);
    uint64_t base = peer.offer.window_base;
    memset(peer.gpu, 0x5a, peer.offer.gpu_size);
    peer_leave(&peer);
    while (!same && count < OTHERS_MAX) {
        hostile_attach(&others[count]);
        same = others[count].offer.window_base == base;
        count++;
        usleep(count < 20 ? 5000 : 200000); /* more than half a minute in all */
    }
    if (same)
        assert_wiped(&others[count - 1]);
    while (count > 0)
        peer_leave(&others[--count]);
    if (!same)
        fail_msg("the window never came back");
}

/* A client that broke the protocol may still write to its window; no other client may get it
 * meanwhile. */
static void window_of_a_liar_is_not_reused(void **state)
{
    struct peer liar, peer;

    (void)state;
    hostile_attach(&liar);
    peer_send_raw(&liar, 0xffff, "", 8);
    assert_true(peer_is_cut_off(&liar));
    usleep(50000);
    for (unsigned i = 0; i < 5; i++) {
        hostile_attach(&peer);
        assert_int_not_equal(peer.offer.window_base, liar.offer.window_base);
        peer_leave(&peer);
    }
    peer_leave(&liar);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOSTILE_CASE(nothing_is_left_behind), /* the first: few windows are free */
        HOSTILE_CASE(tail_that_jumps),
        HOSTILE_CASE(sizes_that_lie),
        HOSTILE_CASE(region_full_of_noise),
        HOSTILE_CASE(fences_full_of_noise),
        HOSTILE_CASE(window_of_a_liar_is_not_reused),
    };

    return HOSTILE_MAIN(tests);
}
