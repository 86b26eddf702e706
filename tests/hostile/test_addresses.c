/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that ask for addresses of others, or for all, and that bring memory which is none. */
#include <unistd.h>

#include "cuda_memory.h"
#include "fd.h"
#include "hostile.h"
#include "shm.h"
#include "sock.h"

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
    assert_true(hostile_is_served(&peer));
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
    assert_true(hostile_is_served(&peer));
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
    assert_true(hostile_is_served(&peer));
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
    assert_true(hostile_is_served(&peer));
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
    assert_true(hostile_is_served(&peer));
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
    assert_true(hostile_is_served(&peer));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOSTILE_CASE(addresses_without_end),       HOSTILE_CASE(addresses_of_others),
        HOSTILE_CASE(memory_changes_places),       HOSTILE_CASE(memory_that_comes_along),
        HOSTILE_CASE(allocations_that_come_along), HOSTILE_CASE(descriptors_that_are_no_memory),
        HOSTILE_CASE(dma_bufs_of_others),
    };

    return HOSTILE_MAIN(tests);
}
