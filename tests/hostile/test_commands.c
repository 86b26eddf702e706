/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients whose commands are cut short, forged, or simply wrong.
 *
 * The line that the server draws: who breaks the protocol is ended; who misuses an API gets an
 * error and goes on.
 */
#include <string.h>
#include <unistd.h>

#include "hostile.h"
#include "region.h"
#include "shm.h"
#include "sock.h"
#include "trace_format.h"

static uint32_t last_op(void)
{
    uint32_t op = 1;

    while (wire_op_name(op))
        op++;
    return op - 1;
}

/* A command of nothing but zeroes, of every length up to 160 bytes. Some are whole commands that
 * name no handle; most are not. Either way only this client may notice. */
static void commands_of_every_length(void **state)
{
    const unsigned char zeroes[160] = {0};
    struct peer peer;

    (void)state;
    for (uint32_t op = 1; op <= last_op(); op++) {
        for (uint32_t size = 8; size <= sizeof(zeroes); size += 16) {
            hostile_attach(&peer);
            peer_send_raw(&peer, channel_kind(op, CHANNEL_NO_SLOT), zeroes, size);
            assert_true(hostile_is_served(&peer) || peer_is_cut_off(&peer));
            peer_leave(&peer);
        }
    }
}

static void is_ended_by(uint32_t kind, const void *payload, uint32_t size)
{
    struct peer peer;

    hostile_attach(&peer);
    assert_true(peer_send_raw(&peer, kind, payload, size));
    assert_true(peer_is_cut_off(&peer));
    assert_int_equal(channel_error(&peer.channel), CUDA_ERROR_MPS_CLIENT_TERMINATED);
    peer_leave(&peer);
}

static void unknown_commands_end_the_client(void **state)
{
    const unsigned char zeroes[64] = {0};

    (void)state;
    is_ended_by(0, zeroes, 64);
    is_ended_by(last_op() + 1, zeroes, 64);
    is_ended_by(0xffff, zeroes, 64);
    is_ended_by(channel_kind(WIRE_fnFence, 0), zeroes, 64); /* async with a slot */
    is_ended_by(WIRE_cuMemGetInfo_v2, zeroes, 16);          /* sync without */
    is_ended_by(channel_kind(WIRE_cuMemGetInfo_v2, 32), zeroes, 16);
    is_ended_by(channel_kind(WIRE_cuMemGetInfo_v2, 0x7fff), zeroes, 16);
}

/* Lengths inside a message that lead out of it. */
static void lengths_that_lie(void **state)
{
    uint32_t words[64];

    (void)state;
    memset(words, 0xff, sizeof(words));
    is_ended_by(WIRE_cuLaunchKernelEx, words, sizeof(words));
    is_ended_by(WIRE_cuMemcpyHtoDAsync_v2, words, sizeof(words));
    is_ended_by(WIRE_fnNote, words, sizeof(words));
    is_ended_by(channel_kind(WIRE_cuLibraryGetKernel, 0), words, sizeof(words));
    is_ended_by(channel_kind(WIRE_cuLibraryLoadData, 0), words, sizeof(words));
}

static void random_commands(void **state)
{
    uint64_t seed = 20261121;
    unsigned char bytes[512];
    struct peer peer;

    (void)state;
    for (unsigned client = 0; client < 100; client++) {
        hostile_attach(&peer);
        for (unsigned i = 0; i < 50 && !sock_hung_up(peer.socket); i++) {
            uint32_t kind = unit_random(&seed) % (last_op() + 2);
            if (unit_random(&seed) % 3 == 0)
                kind = channel_kind(kind, (int)(unit_random(&seed) % 34));
            for (unsigned j = 0; j < sizeof(bytes); j++)
                bytes[j] = unit_random(&seed) % 4 ? 0 : (unsigned char)unit_random(&seed);
            peer_send_raw(&peer, kind, bytes, 8 + unit_random(&seed) % 500);
        }
        peer_leave(&peer);
    }
}

static CUresult profile_into(struct peer *peer, int fd)
{
    const struct socket_message message = {.kind = SOCKET_BLOB, .id = 81};
    const struct wire_fnProfile in = {.action = WIRE_PROFILE_BEGIN, .blob = 81};

    assert_int_equal(sock_send(peer->socket, &message, sizeof(message), &fd, 1), 0);
    return wire_fnProfile(&peer->channel, &in);
}

static CUresult profile_act(struct peer *peer, uint32_t action)
{
    const struct wire_fnProfile in = {.action = action};

    return wire_fnProfile(&peer->channel, &in);
}

/* Fills each byte of the file, so that no record has a place and the counters are nonsense. */
static void fill_file(int fd)
{
    void *file;

    assert_int_equal(shm_map(fd, PROFILE_FILE_SIZE, NULL, 0, &file), 0);
    memset(file, 0xff, PROFILE_FILE_SIZE);
    shm_unmap(file, PROFILE_FILE_SIZE);
}

/* A profile into a file that is no memory, too small, or not there; a second one; no profile at
 * all. The last one goes into a file that the client fills with nonsense, and then leaves. */
static void profiles_that_are_none(void **state)
{
    int pipes[2], small = -1, absent = -1, file = -1;
    struct peer peer;

    (void)state;
    hostile_attach(&peer);
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(shm_create("small", 4096, &small), 0);
    assert_int_equal(shm_create("absent", PROFILE_FILE_SIZE, &absent), 0);
    assert_int_equal(shm_create("file", PROFILE_FILE_SIZE, &file), 0);
    assert_int_equal(shm_populate(file, PROFILE_FILE_SIZE), 0);
    assert_int_equal(profile_act(&peer, WIRE_PROFILE_COLLECT), CUDA_SUCCESS);
    assert_int_equal(profile_act(&peer, WIRE_PROFILE_END), CUDA_SUCCESS);
    assert_int_equal(profile_act(&peer, 77), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(profile_into(&peer, pipes[0]), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(profile_into(&peer, small), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(profile_into(&peer, absent), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(profile_into(&peer, file), CUDA_SUCCESS);
    assert_int_equal(profile_into(&peer, file), CUDA_ERROR_NOT_PERMITTED);
    fill_file(file);
    assert_true(hostile_is_served(&peer));
    assert_int_equal(profile_act(&peer, WIRE_PROFILE_COLLECT), CUDA_SUCCESS);
    assert_int_equal(profile_act(&peer, WIRE_PROFILE_END), CUDA_SUCCESS);
    assert_int_equal(profile_into(&peer, file), CUDA_SUCCESS);
    assert_true(hostile_is_served(&peer));
    close(pipes[0]);
    close(pipes[1]);
    close(small);
    close(absent);
    close(file);
    peer_leave(&peer);
}

static void handles_that_are_none(void **state)
{
    struct peer peer;

    (void)state;
    hostile_attach(&peer);
    uint64_t stream = peer_make_stream(&peer, 1);
    const uint64_t forged[] = {0,
                               1,
                               2,
                               UINT64_MAX,
                               stream + 1,
                               stream + (1ull << 24),
                               (stream & 0xffffffffffffull) | (uint64_t)WIRE_EVENT << 48,
                               hostile.witness.stream + 77};

    for (unsigned i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
        assert_true(peer_fence(&peer, forged[i], 1));
        assert_int_equal(hostile_deferred(&peer), CUDA_ERROR_INVALID_HANDLE);
    }
    assert_true(peer_fence(&peer, stream, 1));
    assert_int_equal(hostile_deferred(&peer), CUDA_SUCCESS);
    assert_true(peer_wait_fence(&peer, 1, 1));
    peer_leave(&peer);
}

/* An event under a stream's handle would be taken for a stream. */
static void objects_under_foreign_kinds(void **state)
{
    struct peer peer;

    (void)state;
    hostile_attach(&peer);
    const struct wire_cuEventCreate event = {.hEvent = peer_handle(&peer, WIRE_STREAM)};
    channel_lock(&peer.channel);
    wire_cuEventCreate(&peer.channel, &event);
    channel_unlock(&peer.channel);
    assert_int_equal(hostile_deferred(&peer), CUDA_ERROR_INVALID_HANDLE);
    assert_true(peer_fence(&peer, event.hEvent, 1));
    assert_int_equal(hostile_deferred(&peer), CUDA_ERROR_INVALID_HANDLE);
    assert_true(hostile_is_served(&peer));
    peer_leave(&peer);
}

/* A client that makes every mistake it can, as fast as it can, fills neither log nor memory. */
static void flood_of_mistakes(void **state)
{
    struct peer peer;
    long before = server_process_log_size(&hostile.server);

    (void)state;
    hostile_attach(&peer);
    const struct wire_fnNote note = {.text = "flood", .text_size = 5};
    for (unsigned i = 0; i < 20000; i++) {
        assert_true(peer_fence(&peer, 0x1234567890 + i, 1));
        channel_lock(&peer.channel);
        assert_int_equal(wire_fnNote(&peer.channel, &note), CUDA_SUCCESS);
        channel_unlock(&peer.channel);
    }
    assert_true(hostile_is_served(&peer));
    assert_true(server_process_log_size(&hostile.server) - before < 100000);
    peer_leave(&peer);
}

static uint32_t reason_of(struct peer *peer, uint32_t within, char text[512])
{
    const struct wire_fnReason in = {.within = within};
    struct wire_fnReason_reply out = {.text = text, .text_capacity = 512};

    assert_int_equal(wire_fnReason(&peer->channel, &in, &out), CUDA_SUCCESS);
    return out.text_size;
}

/* A client learns why its own last command failed, once, and nothing of what lies further back. */
static void reasons_are_told_once(void **state)
{
    const struct wire_cuFuncGetAttribute ask = {.f = 0x123456789};
    struct wire_cuFuncGetAttribute_reply out;
    struct peer peer;
    char text[512];

    (void)state;
    hostile_attach(&peer);
    assert_int_equal(reason_of(&peer, 8, text), 0);
    assert_int_equal(wire_cuFuncGetAttribute(&peer.channel, &ask, &out), CUDA_ERROR_INVALID_HANDLE);
    assert_true(reason_of(&peer, 8, text) > 0);
    assert_memory_equal(text, "cuFuncGetAttribute: ", strlen("cuFuncGetAttribute: "));
    assert_int_equal(reason_of(&peer, 8, text), 0);
    assert_int_equal(wire_cuFuncGetAttribute(&peer.channel, &ask, &out), CUDA_ERROR_INVALID_HANDLE);
    assert_true(hostile_is_served(&peer));
    assert_int_equal(reason_of(&peer, 1, text), 0);
    peer_leave(&peer);
}

static void more_objects_than_allowed(void **state)
{
    struct peer peer;

    (void)state;
    hostile_attach(&peer);
    for (unsigned i = 0; i < 5000; i++)
        peer_make_stream(&peer, i % GPU_REGION_FENCES);
    assert_int_equal(hostile_deferred(&peer), CUDA_ERROR_OUT_OF_MEMORY);
    assert_true(hostile_is_served(&peer));
    peer_leave(&peer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOSTILE_CASE(reasons_are_told_once),
        HOSTILE_CASE(commands_of_every_length),
        HOSTILE_CASE(unknown_commands_end_the_client),
        HOSTILE_CASE(lengths_that_lie),
        HOSTILE_CASE(random_commands),
        HOSTILE_CASE(handles_that_are_none),
        HOSTILE_CASE(objects_under_foreign_kinds),
        HOSTILE_CASE(profiles_that_are_none),
        HOSTILE_CASE(flood_of_mistakes),
        HOSTILE_CASE(more_objects_than_allowed),
    };

    return HOSTILE_MAIN(tests);
}
