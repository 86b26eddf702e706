/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients whose commands are cut short, forged, or simply wrong.
 *
 * The line that the server draws: who breaks the protocol is ended; who misuses an API gets an
 * error and goes on.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cuda_memory.h"
#include "fd.h"
#include "hostile.h"
#include "region.h"
#include "shm.h"
#include "sock.h"
#include "trace_format.h"

/* Is the session still there? Its answer to an honest question says so. */
static bool still_served(struct peer *peer)
{
    const struct wire_cuMemGetInfo_v2 in = {0};
    struct wire_cuMemGetInfo_v2_reply out = {0};

    return wire_cuMemGetInfo_v2(&peer->channel, &in, &out) == CUDA_SUCCESS && out.total > 0;
}

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
            assert_true(still_served(&peer) || peer_is_cut_off(&peer));
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

static CUresult reserve(struct peer *peer, uint64_t from, uint64_t size, uint64_t *ret_address)
{
    const struct wire_fnReserve in = {.from = from, .size = size, .alignment = 2u << 20};
    struct wire_fnReserve_reply out = {0};
    CUresult result = wire_fnReserve(&peer->channel, &in, &out);

    *ret_address = out.address;
    return result;
}

/* Too many addresses, and crooked ones. */
static void addresses_without_end(void **state)
{
    const uint64_t piece = 2u << 20;
    struct wire_fnReserve in = {.size = piece, .alignment = 3};
    struct wire_fnReserve_reply out;
    uint64_t address, most = RESERVE_END - RESERVE_FIRST;
    struct peer peer;

    (void)state;
    hostile_attach(&peer);
    assert_int_not_equal(wire_fnReserve(&peer.channel, &in, &out), CUDA_SUCCESS);
    in.alignment = 1ull << 63;
    assert_int_not_equal(wire_fnReserve(&peer.channel, &in, &out), CUDA_SUCCESS);
    assert_int_not_equal(reserve(&peer, 0, 0, &address), CUDA_SUCCESS);
    assert_int_not_equal(reserve(&peer, 0, 4096, &address), CUDA_SUCCESS);
    assert_int_not_equal(reserve(&peer, RESERVE_FIRST, UINT64_MAX, &address), CUDA_SUCCESS);
    assert_int_not_equal(reserve(&peer, RESERVE_FIRST, most, &address), CUDA_SUCCESS);
    unsigned pieces = 0; /* nor may anybody have it all in pieces */
    while (pieces < 32 && reserve(&peer, 0, most / 64, &address) == CUDA_SUCCESS)
        pieces++;
    assert_in_range(pieces, 1, 31);
    assert_true(still_served(&peer));
    peer_leave(&peer);
}

/* Reservations of two clients where one is already, and mappings outside reservations. */
static void addresses_of_others(void **state)
{
    const uint64_t piece = 2u << 20;
    struct peer peer, other;
    uint64_t start, address;

    (void)state;
    hostile_attach(&peer);
    hostile_attach(&other);
    assert_int_equal(reserve(&other, 0, piece, &start), CUDA_SUCCESS);
    const struct wire_cuMemCreate stolen = {.handle = peer_handle(&peer, WIRE_ALLOCATION),
                                            .size = piece};
    struct wire_cuMemMap theft = {.handle = stolen.handle, .ptr = start, .size = piece};
    assert_int_equal(wire_cuMemCreate(&peer.channel, &stolen), CUDA_SUCCESS);
    assert_int_not_equal(wire_cuMemMap(&peer.channel, &theft), CUDA_SUCCESS);
    assert_int_equal(reserve(&peer, start, piece, &address), CUDA_SUCCESS);
    assert_int_not_equal(address, start);
    assert_int_equal(reserve(&peer, UINT64_MAX - 1, piece, &start), CUDA_SUCCESS);
    assert_in_range(start, RESERVE_FIRST, RESERVE_END - piece);
    peer_leave(&other);

    const struct wire_cuMemCreate create = {.handle = peer_handle(&peer, WIRE_ALLOCATION),
                                            .size = 2 * piece};
    struct wire_cuMemMap map = {.handle = create.handle, .ptr = start, .size = 2 * piece};
    assert_int_equal(wire_cuMemCreate(&peer.channel, &create), CUDA_SUCCESS);
    assert_int_not_equal(wire_cuMemMap(&peer.channel, &map), CUDA_SUCCESS);
    map.ptr = peer.offer.window_base;
    map.size = piece;
    assert_int_not_equal(wire_cuMemMap(&peer.channel, &map), CUDA_SUCCESS);
    assert_true(still_served(&peer));
    peer_leave(&peer);
}

/* Only the peer's own granules of device memory change places, each to where it is not. */
static void memory_changes_places(void **state)
{
    uint64_t address, host_address;
    _cleanup_fd_ int fd = -1;
    struct peer peer, other;

    (void)state;
    hostile_attach(&peer);
    hostile_attach(&other);
    assert_int_equal(peer_make_granule(&peer, 2u << 20, &address), CUDA_SUCCESS);
    assert_int_equal(peer_make_host_granule(&peer, 2u << 20, &host_address, &fd), CUDA_SUCCESS);
    assert_int_not_equal(peer_move_granule(&peer, address, false), CUDA_SUCCESS);
    assert_int_not_equal(peer_move_granule(&other, address, true), CUDA_SUCCESS);
    assert_int_not_equal(peer_move_granule(&peer, address + 4096, true), CUDA_SUCCESS);
    assert_int_not_equal(peer_move_granule(&peer, host_address, true), CUDA_SUCCESS);
    assert_int_not_equal(peer_move_granule(&peer, peer.offer.staging_address, true), CUDA_SUCCESS);
    assert_int_equal(peer_move_granule(&peer, address, true), CUDA_SUCCESS);
    assert_int_not_equal(peer_move_granule(&peer, address, true), CUDA_SUCCESS);
    assert_true(still_served(&peer));
    assert_int_equal(peer_move_granule(&peer, address, false), CUDA_SUCCESS);
    assert_int_equal(peer_move_granule(&peer, address, true), CUDA_SUCCESS);
    peer_leave(&other);
    peer_leave(&peer);
}

static CUresult adopt(struct peer *peer, uint64_t address, uint64_t size, int fd)
{
    const struct socket_message message = {.kind = SOCKET_BLOB, .id = 78, .value = size};
    const struct wire_fnGranuleAdopt in = {.blob = 78, .address = address, .size = size};

    assert_int_equal(sock_send(peer->socket, &message, sizeof(message), &fd, 1), 0);
    return wire_fnGranuleAdopt(&peer->channel, &in);
}

static CUresult adopt_host(struct peer *peer, uint64_t address, uint64_t size, int fd)
{
    const struct socket_message message = {.kind = SOCKET_BLOB, .id = 79, .value = size};
    const struct wire_fnHostGranuleAdopt in = {.blob = 79, .address = address, .size = size};

    assert_int_equal(sock_send(peer->socket, &message, sizeof(message), &fd, 1), 0);
    return wire_fnHostGranuleAdopt(&peer->channel, &in);
}

/* Memory from a server that never existed: outside of the window, over mapped memory, larger than
 * the descriptor has, and no memory at all. */
static void memory_that_comes_along(void **state)
{
    const uint64_t piece = 2u << 20;
    int memory, pipes[2];
    struct peer peer;

    (void)state;
    hostile_attach(&peer);
    const uint64_t base = peer.offer.window_base, host = base + peer.offer.device_span;
    assert_int_equal(shm_create("test", piece, &memory), 0);
    assert_int_equal(pipe(pipes), 0);
    assert_int_not_equal(adopt(&peer, base, piece, pipes[0]), CUDA_SUCCESS);
    assert_int_not_equal(adopt(&peer, 0, piece, memory), CUDA_SUCCESS);
    assert_int_not_equal(adopt(&peer, base - piece, piece, memory), CUDA_SUCCESS);
    assert_int_not_equal(adopt(&peer, host, piece, memory), CUDA_SUCCESS);
    assert_int_not_equal(adopt(&peer, base + 1, piece, memory), CUDA_SUCCESS);
    assert_int_not_equal(adopt(&peer, base, piece - 1, memory), CUDA_SUCCESS);
    assert_int_not_equal(adopt(&peer, base, UINT64_MAX - piece + 1, memory), CUDA_SUCCESS);
    assert_int_not_equal(adopt_host(&peer, host, piece, memory), CUDA_SUCCESS);
    assert_int_not_equal(adopt_host(&peer, base, piece, memory), CUDA_SUCCESS);
    assert_int_not_equal(adopt_host(&peer, host + (64u << 20), 2 * piece, memory), CUDA_SUCCESS);
    assert_int_not_equal(adopt_host(&peer, host + (64u << 20), piece, pipes[0]), CUDA_SUCCESS);
    assert_int_equal(adopt_host(&peer, host + (64u << 20), piece, memory), CUDA_SUCCESS);
    assert_int_not_equal(adopt_host(&peer, host + (64u << 20), piece, memory), CUDA_SUCCESS);
    assert_true(still_served(&peer));
    close(memory);
    close(pipes[0]);
    close(pipes[1]);
    peer_leave(&peer);
}

/* Physical memory that the server makes for the peer, as a descriptor. */
static int make_memory(struct peer *peer, uint64_t size)
{
    const struct wire_cuMemCreate create = {.handle = peer_handle(peer, WIRE_ALLOCATION),
                                            .size = size};
    const struct wire_cuMemExportToShareableHandle export = {.handle = create.handle};
    struct socket_message message;
    size_t fds = 0;
    int fd = -1;

    assert_int_equal(wire_cuMemCreate(&peer->channel, &create), CUDA_SUCCESS);
    assert_int_equal(sock_recv(peer->socket, &message, sizeof(message), &fd, 1, &fds, 10000),
                     sizeof(message));
    assert_int_equal(message.kind, SOCKET_GRANULE);
    fd_close(&fd);
    assert_int_equal(wire_cuMemExportToShareableHandle(&peer->channel, &export), CUDA_SUCCESS);
    assert_int_equal(sock_recv(peer->socket, &message, sizeof(message), &fd, 1, &fds, 10000),
                     sizeof(message));
    assert_int_equal(message.kind, SOCKET_ALLOCATION);
    return fd;
}

static CUresult adopt_allocation(struct peer *peer, uint64_t handle, uint32_t device, uint64_t size,
                                 int fd)
{
    const struct socket_message message = {.kind = SOCKET_BLOB, .id = 80, .value = size};
    const struct wire_fnAllocationAdopt in = {
        .handle = handle, .device = device, .blob = 80, .size = size};

    assert_int_equal(sock_send(peer->socket, &message, sizeof(message), &fd, 1), 0);
    return wire_fnAllocationAdopt(&peer->channel, &in);
}

/* Physical memory that comes along: of no device, of crooked sizes, no memory at all, and more of
 * it than has been charged. */
static void allocations_that_come_along(void **state)
{
    const uint64_t piece = 2u << 20;
    uint64_t address;
    int pipes[2];
    struct peer peer;

    (void)state;
    hostile_attach(&peer);
    const int memory = make_memory(&peer, 2 * piece);
    const uint64_t handle = peer_handle(&peer, WIRE_ALLOCATION);
    assert_int_equal(pipe(pipes), 0);
    assert_int_not_equal(adopt_allocation(&peer, handle, 0, piece, pipes[0]), CUDA_SUCCESS);
    assert_int_not_equal(adopt_allocation(&peer, handle, 77, piece, memory), CUDA_SUCCESS);
    assert_int_not_equal(adopt_allocation(&peer, handle, 0, 0, memory), CUDA_SUCCESS);
    assert_int_not_equal(adopt_allocation(&peer, handle, 0, piece - 1, memory), CUDA_SUCCESS);
    assert_int_not_equal(adopt_allocation(&peer, handle, 0, 1ull << 62, memory), CUDA_SUCCESS);
    assert_int_equal(adopt_allocation(&peer, handle, 0, piece, memory), CUDA_SUCCESS);
    assert_int_equal(reserve(&peer, 0, 2 * piece, &address), CUDA_SUCCESS);
    struct wire_cuMemMap map = {.handle = handle, .ptr = address, .size = 2 * piece};
    assert_int_not_equal(wire_cuMemMap(&peer.channel, &map), CUDA_SUCCESS);
    map.size = piece;
    assert_int_equal(wire_cuMemMap(&peer.channel, &map), CUDA_SUCCESS);
    assert_true(still_served(&peer));
    close(memory);
    close(pipes[0]);
    close(pipes[1]);
    peer_leave(&peer);
}

/* Descriptors that are no memory are not shown to the driver. */
static void descriptors_that_are_no_memory(void **state)
{
    const struct socket_message message = {.kind = SOCKET_BLOB, .id = 77};
    struct wire_cuMemImportFromShareableHandle in = {.blob = 77};
    struct wire_cuMemImportFromShareableHandle_reply out;
    struct peer peer;

    (void)state;
    hostile_attach(&peer);
    in.handle = peer_handle(&peer, WIRE_ALLOCATION);
    assert_int_equal(sock_send(peer.socket, &message, sizeof(message), &peer.socket, 1), 0);
    assert_int_equal(wire_cuMemImportFromShareableHandle(&peer.channel, &in, &out),
                     CUDA_ERROR_INVALID_VALUE);
    assert_true(still_served(&peer));
    peer_leave(&peer);
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
    assert_true(still_served(&peer));
    assert_int_equal(profile_act(&peer, WIRE_PROFILE_COLLECT), CUDA_SUCCESS);
    assert_int_equal(profile_act(&peer, WIRE_PROFILE_END), CUDA_SUCCESS);
    assert_int_equal(profile_into(&peer, file), CUDA_SUCCESS);
    assert_true(still_served(&peer));
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
    assert_true(still_served(&peer));
    peer_leave(&peer);
}

/* The address is judged before the driver is asked, which may have no dma-bufs at all. */
static void dma_bufs_of_others(void **state)
{
    struct peer peer;

    (void)state;
    hostile_attach(&peer);
    const uint64_t foreign[] = {0,
                                4096,
                                (uintptr_t)&peer,
                                hostile.witness.memory,
                                peer.offer.staging_address,
                                peer.offer.window_base,
                                UINT64_MAX - 4095};

    for (unsigned i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
        const struct wire_cuMemGetHandleForAddressRange in = {.ptr = foreign[i], .size = 4096};
        assert_int_equal(wire_cuMemGetHandleForAddressRange(&peer.channel, &in),
                         CUDA_ERROR_INVALID_VALUE);
    }
    peer_leave(&peer);
}

static CUresult load_from(struct peer *peer, int fd, uint64_t said, uint64_t asked)
{
    const struct socket_message message = {SOCKET_BLOB, 9, said};
    const struct wire_cuLibraryLoadData in = {
        .library = peer_handle(peer, WIRE_MODULE), .blob = 9, .image_size = asked};
    struct wire_cuLibraryLoadData_reply out = {0};

    assert_int_equal(sock_send(peer->socket, &message, sizeof(message), &fd, 1), 0);
    return wire_cuLibraryLoadData(&peer->channel, &in, &out);
}

static void descriptors_that_are_no_blobs(void **state)
{
    struct peer peer;
    int pair[2], unsealed = memfd_create("unsealed", MFD_CLOEXEC), sealed = -1;
    int zero = open("/dev/zero", O_RDWR | O_CLOEXEC);

    (void)state;
    hostile_attach(&peer);
    assert_int_equal(pipe(pair), 0);
    assert_int_equal(ftruncate(unsealed, 4096), 0);
    assert_int_equal(shm_create_read_only("short", "x", 1, &sealed), 0);
    assert_int_not_equal(load_from(&peer, zero, 4096, 4096), CUDA_SUCCESS);
    assert_int_not_equal(load_from(&peer, pair[0], 4096, 4096), CUDA_SUCCESS);
    assert_int_not_equal(load_from(&peer, unsealed, 4096, 4096), CUDA_SUCCESS);
    assert_int_not_equal(load_from(&peer, sealed, 4096, 4096), CUDA_SUCCESS);
    assert_int_not_equal(load_from(&peer, sealed, 1, 4096), CUDA_SUCCESS);
    assert_int_not_equal(load_from(&peer, sealed, UINT64_MAX, UINT64_MAX), CUDA_SUCCESS);
    assert_int_not_equal(load_from(&peer, sealed, 0, 0), CUDA_SUCCESS);
    assert_true(still_served(&peer));
    close(pair[0]);
    close(pair[1]);
    close(unsealed);
    close(sealed);
    close(zero);
    peer_leave(&peer);
}

static void blob_that_never_comes(void **state)
{
    const struct wire_cuLibraryLoadData in = {.library = 1ull << 48, .blob = 1, .image_size = 10};
    struct wire_cuLibraryLoadData_reply out = {0};
    struct peer peer;

    (void)state;
    hostile_attach(&peer);
    assert_int_equal(wire_cuLibraryLoadData(&peer.channel, &in, &out), CUDA_ERROR_INVALID_VALUE);
    assert_true(still_served(&peer));
    peer_leave(&peer);
}

static void images_that_the_server_does_not_have(void **state)
{
    const struct wire_fnImageFind wanted = {.key = 1, .size = UINT64_MAX};
    const struct wire_cuLibraryLoadData in = {.library = 1ull << 48, .image = 77, .image_size = 10};
    struct wire_fnImageFind_reply found = {0};
    struct wire_cuLibraryLoadData_reply out = {0};
    struct peer peer;

    (void)state;
    hostile_attach(&peer);
    assert_int_equal(wire_fnImageFind(&peer.channel, &wanted, &found), CUDA_ERROR_NOT_FOUND);
    assert_int_equal(wire_cuLibraryLoadData(&peer.channel, &in, &out), CUDA_ERROR_NOT_FOUND);
    assert_true(still_served(&peer));
    peer_leave(&peer);
}

static void images_that_are_none(void **state)
{
    unsigned char container[256] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 0xff, 0xff, 0xff, 0x7f};
    unsigned char elf[256] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
    struct peer peer;
    uint64_t module;

    (void)state;
    hostile_attach(&peer);
    assert_int_equal(peer_load_module(&peer, container, sizeof(container), &module),
                     CUDA_ERROR_INVALID_IMAGE);
    memset(elf + 16, 0xff, 200);
    assert_int_equal(peer_load_module(&peer, elf, sizeof(elf), &module), CUDA_ERROR_INVALID_IMAGE);
    assert_int_equal(peer_load_module(&peer, "hello", 5, &module), CUDA_ERROR_INVALID_IMAGE);
    assert_int_not_equal(peer_load_module(&peer, ".version x\n{", 12, &module), CUDA_SUCCESS);
    assert_true(still_served(&peer));
    peer_leave(&peer);
}

static void short_parameters(void **state)
{
    struct peer peer;
    uint64_t module, function;

    (void)state;
    hostile_attach(&peer);
    uint64_t stream = peer_make_stream(&peer, 3);
    assert_int_equal(peer_load_module(&peer, witness_ptx, strlen(witness_ptx) + 1, &module), 0);
    assert_int_equal(peer_find_function(&peer, module, "vector_add", &function), 0);
    const struct wire_cuLaunchKernelEx in = {.f = function,
                                             .shape = {1, 1, 1, 1, 1, 1},
                                             .hStream = stream,
                                             .params = "abcd",
                                             .params_size = 4};
    channel_lock(&peer.channel);
    assert_true(peer_launch(&peer, &in));
    channel_unlock(&peer.channel);
    assert_true(peer_fence(&peer, stream, 1));
    assert_true(peer_wait_fence(&peer, 3, 1)); /* refused, and still fenced */
    assert_int_equal(hostile_deferred(&peer), CUDA_ERROR_INVALID_VALUE);
    peer_leave(&peer);
}

static void enter(struct peer *peer, uint64_t module, uint64_t function, uint32_t kernel)
{
    const struct wire_fnFunctionEnter in = {.library = module, .f = function, .kernel = kernel};

    channel_lock(&peer->channel);
    wire_fnFunctionEnter(&peer->channel, &in);
    channel_unlock(&peer->channel);
}

/* A client that names a kernel which the server never announced gets no function, and one function
 * is not entered twice. */
static void kernels_that_are_not_known(void **state)
{
    struct wire_cuFuncGetAttribute ask = {0};
    struct wire_cuFuncGetAttribute_reply out = {0};
    uint64_t module, function;
    struct peer peer;

    (void)state;
    hostile_attach(&peer);
    assert_int_equal(peer_load_module(&peer, witness_ptx, strlen(witness_ptx) + 1, &module), 0);
    assert_int_equal(peer_find_function(&peer, module, "vector_add", &function), 0);
    ask.f = peer_handle(&peer, WIRE_FUNCTION);
    enter(&peer, module, ask.f, UINT32_MAX);
    enter(&peer, module, ask.f, 1u << 20);
    assert_int_equal(wire_cuFuncGetAttribute(&peer.channel, &ask, &out), CUDA_ERROR_INVALID_HANDLE);
    enter(&peer, module, function, 0);
    enter(&peer, module + 1, ask.f, 0);
    enter(&peer, module, ask.f, 0);
    assert_int_equal(wire_cuFuncGetAttribute(&peer.channel, &ask, &out), CUDA_SUCCESS);
    assert_true(still_served(&peer));
    peer_leave(&peer);
}

/* Only a library that is the client's alone can be joined, and on another device. */
static void libraries_that_can_not_be_joined(void **state)
{
    static const char shared[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                                 ".visible .entry k()\n{\n    ret;\n}\n";
    static const char own[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                              ".global .attribute(.managed) .align 4 .u32 a;\n"
                              ".visible .entry k()\n{\n    ret;\n}\n";
    const char *const images[] = {shared, own};
    struct peer peer;

    (void)state;
    hostile_attach(&peer);
    for (unsigned i = 0; i < 2; i++) {
        struct wire_fnLibraryJoin in = {.library = peer_handle(&peer, WIRE_MODULE), .device = 77};

        assert_int_equal(peer_load_module(&peer, images[i], strlen(images[i]), &in.twin),
                         CUDA_SUCCESS);
        assert_int_equal(wire_fnLibraryJoin(&peer.channel, &in), CUDA_ERROR_INVALID_DEVICE);
        in.device = 0;
        assert_int_equal(wire_fnLibraryJoin(&peer.channel, &in), CUDA_ERROR_INVALID_VALUE);
    }
    assert_true(still_served(&peer));
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
    assert_true(still_served(&peer));
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
    assert_true(still_served(&peer));
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
    assert_true(still_served(&peer));
    peer_leave(&peer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOSTILE_CASE(reasons_are_told_once),
        HOSTILE_CASE(commands_of_every_length),
        HOSTILE_CASE(unknown_commands_end_the_client),
        HOSTILE_CASE(addresses_without_end),
        HOSTILE_CASE(addresses_of_others),
        HOSTILE_CASE(memory_changes_places),
        HOSTILE_CASE(memory_that_comes_along),
        HOSTILE_CASE(allocations_that_come_along),
        HOSTILE_CASE(descriptors_that_are_no_memory),
        HOSTILE_CASE(lengths_that_lie),
        HOSTILE_CASE(random_commands),
        HOSTILE_CASE(handles_that_are_none),
        HOSTILE_CASE(objects_under_foreign_kinds),
        HOSTILE_CASE(dma_bufs_of_others),
        HOSTILE_CASE(descriptors_that_are_no_blobs),
        HOSTILE_CASE(blob_that_never_comes),
        HOSTILE_CASE(profiles_that_are_none),
        HOSTILE_CASE(images_that_the_server_does_not_have),
        HOSTILE_CASE(images_that_are_none),
        HOSTILE_CASE(libraries_that_can_not_be_joined),
        HOSTILE_CASE(short_parameters),
        HOSTILE_CASE(kernels_that_are_not_known),
        HOSTILE_CASE(flood_of_mistakes),
        HOSTILE_CASE(more_objects_than_allowed),
    };

    return HOSTILE_MAIN(tests);
}
