/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory and events that clients share: names that were never given, and closes of what was not
 * opened. Also the deaths of either side in each order.
 */
#include <unistd.h>

#include "hostile.h"
#include "region.h"

#define MIB (1ull << 20)
#define PIECE (1 * MIB)

static CUresult name(struct peer *peer, uint64_t address, uint64_t size,
                     struct wire_cuIpcGetMemHandle_reply *ret_name)
{
    const struct wire_cuIpcGetMemHandle in = {.ptr = address, .size = size};

    return wire_cuIpcGetMemHandle(&peer->channel, &in, ret_name);
}

static CUresult open_name(struct peer *peer, uint64_t key0, uint64_t key1,
                          struct wire_cuIpcOpenMemHandle_v2_reply *ret_opened)
{
    const struct wire_cuIpcOpenMemHandle_v2 in = {.key0 = key0, .key1 = key1};

    return wire_cuIpcOpenMemHandle_v2(&peer->channel, &in, ret_opened);
}

static CUresult close_at(struct peer *peer, uint64_t address)
{
    const struct wire_cuIpcCloseMemHandle in = {.address = address};

    channel_lock(&peer->channel);
    wire_cuIpcCloseMemHandle(&peer->channel, &in);
    channel_unlock(&peer->channel);
    return hostile_deferred(peer);
}

static CUresult withdraw(struct peer *peer, uint64_t address)
{
    const struct wire_fnIpcWithdraw in = {.ptr = address};

    channel_lock(&peer->channel);
    wire_fnIpcWithdraw(&peer->channel, &in);
    channel_unlock(&peer->channel);
    return hostile_deferred(peer);
}

static CUresult give_granule_back(struct peer *peer, uint64_t address)
{
    const struct wire_fnGranuleRelease in = {.address = address};

    channel_lock(&peer->channel);
    wire_fnGranuleRelease(&peer->channel, &in);
    channel_unlock(&peer->channel);
    return hostile_deferred(peer);
}

static CUresult set(struct peer *peer, uint64_t stream, uint64_t address, uint32_t seq)
{
    const struct wire_fnMemset in = {.dst = address,
                                     .value = 7,
                                     .element_size = 1,
                                     .width = PIECE,
                                     .height = 1,
                                     .hStream = stream,
                                     .seq = seq};

    channel_lock(&peer->channel);
    wire_fnMemset(&peer->channel, &in);
    channel_unlock(&peer->channel);
    return hostile_deferred(peer);
}

/* ---- lies ---- */

static void names_of_what_is_not_theirs(void **state)
{
    struct wire_cuIpcGetMemHandle_reply out;
    uint64_t granule;
    struct peer peer;

    (void)state;
    assert_true(peer_attach(&peer, hostile.server.socket));
    assert_int_equal(peer_make_granule(&peer, 4 * MIB, &granule), CUDA_SUCCESS);
    assert_int_not_equal(name(&peer, 0, 1, &out), CUDA_SUCCESS);
    assert_int_not_equal(name(&peer, UINT64_MAX, UINT64_MAX, &out), CUDA_SUCCESS);
    assert_int_not_equal(name(&peer, granule, 0, &out), CUDA_SUCCESS);
    assert_int_not_equal(name(&peer, granule, 4 * MIB + 1, &out), CUDA_SUCCESS);
    assert_int_not_equal(name(&peer, granule + MIB, UINT64_MAX - MIB, &out), CUDA_SUCCESS);
    assert_int_not_equal(name(&peer, hostile.witness.memory, 512, &out), CUDA_SUCCESS);
    assert_int_not_equal(name(&peer, peer.offer.staging_address, 512, &out), CUDA_SUCCESS);
    assert_int_not_equal(withdraw(&peer, granule), CUDA_SUCCESS);
    assert_int_not_equal(withdraw(&peer, hostile.witness.memory), CUDA_SUCCESS);
    peer_leave(&peer);
}

static void names_that_are_none(void **state)
{
    struct wire_cuIpcGetMemHandle_reply named;
    struct wire_cuIpcOpenMemHandle_v2_reply out;
    struct peer peer, other;
    uint64_t granule;

    (void)state;
    assert_true(peer_attach(&peer, hostile.server.socket));
    assert_true(peer_attach(&other, hostile.server.socket));
    assert_int_equal(peer_make_granule(&other, 4 * MIB, &granule), CUDA_SUCCESS);
    assert_int_equal(name(&other, granule + MIB, PIECE, &named), CUDA_SUCCESS);
    assert_int_not_equal(open_name(&peer, 0, 0, &out), CUDA_SUCCESS);
    assert_int_not_equal(open_name(&peer, named.key0, named.key1 + 1, &out), CUDA_SUCCESS);
    assert_int_not_equal(open_name(&peer, named.key0 + 1, named.key1, &out), CUDA_SUCCESS);
    assert_int_equal(open_name(&other, named.key0, named.key1, &out), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_not_equal(close_at(&peer, granule + MIB), CUDA_SUCCESS);
    assert_int_not_equal(close_at(&peer, UINT64_MAX), CUDA_SUCCESS);
    const struct wire_cuIpcOpenEventHandle event = {
        .hEvent = peer_handle(&peer, WIRE_EVENT), .key0 = named.key0, .key1 = named.key1};
    struct wire_cuIpcOpenEventHandle_reply opened;
    assert_int_not_equal(wire_cuIpcOpenEventHandle(&peer.channel, &event, &opened), CUDA_SUCCESS);
    assert_int_equal(withdraw(&other, granule + MIB), CUDA_SUCCESS);
    assert_int_not_equal(open_name(&peer, named.key0, named.key1, &out), CUDA_SUCCESS);
    peer_leave(&peer);
    peer_leave(&other);
}

/* Opened memory is no granule of the opener's, and it is gone once it has been closed often enough.
 */
static void opened_memory_is_not_owned(void **state)
{
    struct wire_cuIpcGetMemHandle_reply named, again, second;
    struct wire_cuIpcOpenMemHandle_v2_reply out, other_piece;
    struct peer peer, other;
    uint64_t granule;

    (void)state;
    assert_true(peer_attach(&peer, hostile.server.socket));
    assert_true(peer_attach(&other, hostile.server.socket));
    uint64_t stream = peer_make_stream(&peer, 1);
    assert_int_equal(peer_make_granule(&other, 4 * MIB, &granule), CUDA_SUCCESS);
    assert_int_equal(name(&other, granule + MIB, PIECE, &named), CUDA_SUCCESS);
    assert_int_equal(name(&other, granule + MIB, PIECE, &again), CUDA_SUCCESS);
    assert_true(named.key0 == again.key0 && named.key1 == again.key1);
    assert_int_equal(name(&other, granule + 2 * MIB, PIECE, &second), CUDA_SUCCESS);
    assert_int_equal(open_name(&peer, named.key0, named.key1, &out), CUDA_SUCCESS);
    assert_int_equal(open_name(&peer, second.key0, second.key1, &other_piece), CUDA_SUCCESS);
    assert_true(other_piece.address == out.address + MIB);
    assert_int_equal(set(&peer, stream, out.address, 1), CUDA_SUCCESS);
    assert_int_not_equal(give_granule_back(&peer, out.address - MIB), CUDA_SUCCESS);
    assert_int_not_equal(name(&peer, out.address, PIECE, &again), CUDA_SUCCESS);
    assert_true(peer_wait_fence(&peer, 1, 1));
    assert_int_equal(close_at(&peer, out.address), CUDA_SUCCESS);
    assert_int_equal(set(&peer, stream, other_piece.address, 2), CUDA_SUCCESS);
    assert_true(peer_wait_fence(&peer, 1, 2));
    assert_int_equal(close_at(&peer, other_piece.address), CUDA_SUCCESS);
    assert_int_not_equal(set(&peer, stream, out.address, 3), CUDA_SUCCESS);
    assert_int_not_equal(close_at(&peer, out.address), CUDA_SUCCESS);
    peer_leave(&peer);
    peer_leave(&other);
}

/* The server has one device, which has no peer. */
static void peers_that_are_none(void **state)
{
    const struct wire_cuCtxEnablePeerAccess pairs[] = {{0, 0},  {0, 1},  {1, 0},
                                                       {0, 63}, {64, 0}, {UINT32_MAX, UINT32_MAX}};
    struct peer peer;

    (void)state;
    assert_true(peer_attach(&peer, hostile.server.socket));
    for (unsigned i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        assert_int_not_equal(wire_cuCtxEnablePeerAccess(&peer.channel, &pairs[i]), CUDA_SUCCESS);
    assert_int_equal(hostile_deferred(&peer), CUDA_SUCCESS);
    peer_leave(&peer);
}

/* ---- ends ---- */

enum first { OWNER_FREES, OWNER_LEAVES, OPENER_LEAVES };

static void end_in_order(enum first first)
{
    struct wire_cuIpcGetMemHandle_reply named;
    struct wire_cuIpcOpenMemHandle_v2_reply out;
    uint64_t before = free_memory(), granule;
    struct peer owner, opener;

    assert_true(peer_attach(&owner, hostile.server.socket));
    assert_true(peer_attach(&opener, hostile.server.socket));
    uint64_t stream = peer_make_stream(&opener, 1);
    assert_int_equal(peer_make_granule(&owner, 4 * MIB, &granule), CUDA_SUCCESS);
    assert_int_equal(name(&owner, granule, PIECE, &named), CUDA_SUCCESS);
    assert_int_equal(open_name(&opener, named.key0, named.key1, &out), CUDA_SUCCESS);
    if (first == OWNER_FREES)
        assert_int_equal(give_granule_back(&owner, granule), CUDA_SUCCESS);
    if (first == OWNER_LEAVES)
        peer_leave(&owner);
    if (first == OPENER_LEAVES) {
        peer_leave(&opener);
        assert_int_equal(set(&owner, peer_make_stream(&owner, 1), granule, 1), CUDA_SUCCESS);
        assert_true(peer_wait_fence(&owner, 1, 1));
    } else {
        assert_int_equal(set(&opener, stream, out.address, 1), CUDA_SUCCESS);
        assert_true(peer_wait_fence(&opener, 1, 1));
        peer_leave(&opener);
    }
    assert_int_equal(hostile_check(NULL), 0);
    if (first != OWNER_LEAVES)
        peer_leave(&owner);
    assert_true(free_memory_comes_back_to(before));
}

static void ends_in_each_order(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 3; round++) {
        end_in_order(OWNER_FREES);
        end_in_order(OWNER_LEAVES);
        end_in_order(OPENER_LEAVES);
    }
}

static bool event_is_done(struct peer *peer, uint64_t event)
{
    const struct wire_cuEventQuery in = {.hEvent = event};
    struct wire_cuEventQuery_reply out = {0};

    assert_int_equal(wire_cuEventQuery(&peer->channel, &in, &out), CUDA_SUCCESS);
    return out.done;
}

/* A stream that waits for the event of a client that is gone continues. */
static void an_event_outlives_its_maker(void **state)
{
    struct wire_cuIpcGetEventHandle_reply named;
    struct wire_cuIpcOpenEventHandle_reply opened;
    struct peer maker, other;

    (void)state;
    assert_true(peer_attach(&maker, hostile.server.socket));
    assert_true(peer_attach(&other, hostile.server.socket));
    uint64_t held = peer_make_stream(&maker, 1), stream = peer_make_stream(&other, 1);
    const struct wire_cuEventCreate create = {.hEvent = peer_handle(&maker, WIRE_EVENT)};
    const struct wire_cuLaunchHostFunc callback = {
        .hStream = held, .seq = 1, .host_wait_word = 1, .host_wait_seq = 1};
    const struct wire_cuEventRecordWithFlags record = {.hEvent = create.hEvent, .hStream = held};
    const struct wire_cuIpcGetEventHandle get = {.hEvent = create.hEvent};
    channel_lock(&maker.channel);
    wire_cuEventCreate(&maker.channel, &create);
    wire_cuLaunchHostFunc(&maker.channel, &callback);
    wire_cuEventRecordWithFlags(&maker.channel, &record);
    channel_unlock(&maker.channel);
    assert_int_equal(wire_cuIpcGetEventHandle(&maker.channel, &get, &named), CUDA_SUCCESS);
    assert_false(event_is_done(&maker, create.hEvent));

    const struct wire_cuIpcOpenEventHandle in = {
        .hEvent = peer_handle(&other, WIRE_EVENT), .key0 = named.key0, .key1 = named.key1};
    const struct wire_cuStreamWaitEvent wait = {.hStream = stream, .hEvent = in.hEvent};
    const struct wire_fnFence fence = {.hStream = stream, .seq = 1};
    assert_int_equal(wire_cuIpcOpenEventHandle(&other.channel, &in, &opened), CUDA_SUCCESS);
    channel_lock(&other.channel);
    wire_cuStreamWaitEvent(&other.channel, &wait);
    wire_fnFence(&other.channel, &fence);
    channel_unlock(&other.channel);
    assert_false(event_is_done(&other, in.hEvent));
    peer_leave(&maker);
    assert_true(peer_wait_fence(&other, 1, 1));
    assert_true(event_is_done(&other, in.hEvent));
    assert_int_not_equal(wire_cuIpcOpenEventHandle(&other.channel, &in, &opened), CUDA_SUCCESS);
    peer_leave(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOSTILE_CASE(names_of_what_is_not_theirs), HOSTILE_CASE(names_that_are_none),
        HOSTILE_CASE(opened_memory_is_not_owned),  HOSTILE_CASE(ends_in_each_order),
        HOSTILE_CASE(an_event_outlives_its_maker), HOSTILE_CASE(peers_that_are_none),
    };

    return HOSTILE_MAIN(tests);
}
