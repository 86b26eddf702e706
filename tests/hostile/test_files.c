/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of files that a peer brings along to share it with the device. Some are no such file, and
 * some are cut short while the device works on them.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fd.h"
#include "hostile.h"
#include "shm.h"
#include "sock.h"

#define MIB (1ull << 20)
#define PAGE 4096ull

static CUresult map_at(struct peer *peer, int fd, uint64_t offset, uint64_t size, uint64_t wanted,
                       uint64_t *ret_address)
{
    const struct socket_message message = {.kind = SOCKET_BLOB, .id = 90, .value = size};
    const struct wire_fnHostFileMap in = {
        .blob = 90, .offset = offset, .address = wanted, .size = size};
    struct wire_fnHostFileMap_reply out = {0};
    CUresult result;

    assert_int_equal(sock_send(peer->socket, &message, sizeof(message), &fd, 1), 0);
    result = wire_fnHostFileMap(&peer->channel, &in, &out);
    *ret_address = out.address;
    return result;
}

static CUresult map(struct peer *peer, int fd, uint64_t offset, uint64_t size)
{
    uint64_t address;

    return map_at(peer, fd, offset, size, 0, &address);
}

static int make_file(uint64_t size)
{
    int fd = memfd_create("file", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)size), 0);
    return fd;
}

static int open_read_only(int fd)
{
    char name[64];

    snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    return open(name, O_RDONLY | O_CLOEXEC);
}

static void descriptors_of_no_shared_memory(void **state)
{
    uint64_t address;
    int file = make_file(4 * MIB - 1), reader = open_read_only(file), sealed = make_file(4 * MIB);
    int zeroes = open("/dev/zero", O_RDWR), kernel = open("/proc/self/maps", O_RDONLY), pipes[2];
    struct peer peer;

    (void)state;
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(fcntl(sealed, F_ADD_SEALS, F_SEAL_WRITE), 0);
    assert_true(peer_attach(&peer, hostile.server.socket));
    assert_int_equal(map(&peer, pipes[0], 0, MIB), CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(map(&peer, zeroes, 0, MIB), CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(map(&peer, kernel, 0, PAGE), CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(map(&peer, peer.socket, 0, MIB), CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(map(&peer, reader, 0, MIB), CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(map(&peer, sealed, 0, MIB), CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(map(&peer, file, 0, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(map(&peer, file, 0, PAGE + 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(map(&peer, file, 1, PAGE), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(map(&peer, file, 0, 4 * MIB + PAGE), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(map(&peer, file, 4 * MIB, PAGE), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(map(&peer, file, 0 - (uint64_t)PAGE, 2 * PAGE), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(map(&peer, file, 1ull << 63, PAGE), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(map(&peer, file, 0, 1ull << 62), CUDA_ERROR_INVALID_VALUE);
    const uint64_t base = peer.offer.window_base, host = base + peer.offer.device_span;
    const uint64_t places[] = {base, host, host + 64 * MIB + PAGE, base - 2 * MIB, 0 - 2 * MIB};
    for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        assert_int_not_equal(map_at(&peer, file, 0, MIB, places[i], &address), CUDA_SUCCESS);
    assert_int_equal(map_at(&peer, file, MIB, 3 * MIB, host + 64 * MIB, &address), CUDA_SUCCESS);
    assert_int_equal(address, host + 64 * MIB);
    assert_int_not_equal(map_at(&peer, file, 0, MIB, host + 66 * MIB, &address), CUDA_SUCCESS);
    peer_leave(&peer);
    close(file);
    close(reader);
    close(sealed);
    close(zeroes);
    close(kernel);
    close(pipes[0]);
    close(pipes[1]);
}

/* It counts as page-locked memory, also when one file comes again and again. */
static void files_have_a_quota(void **state)
{
    int file = make_file(64 * MIB);
    struct peer peer;

    (void)state;
    assert_true(peer_attach(&peer, hostile.server.socket));
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(map(&peer, file, 0, 64 * MIB), CUDA_SUCCESS);
    assert_int_equal(map(&peer, file, 0, PAGE), CUDA_ERROR_OUT_OF_MEMORY);
    peer_leave(&peer);
    close(file);
}

/* ---- cutting short ---- */

struct worker {
    struct peer peer;
    uint64_t stream, poke;
    uint32_t seq;
};

static void start(struct worker *worker)
{
    uint64_t module;

    *worker = (struct worker){0};
    assert_true(peer_attach(&worker->peer, hostile.server.socket));
    worker->stream = peer_make_stream(&worker->peer, 1);
    assert_int_equal(peer_load_module(&worker->peer, witness_ptx, strlen(witness_ptx) + 1, &module),
                     0);
    assert_int_equal(peer_find_function(&worker->peer, module, "poke", &worker->poke), 0);
}

static void finish(struct worker *worker)
{
    assert_true(peer_fence(&worker->peer, worker->stream, ++worker->seq));
    assert_true(peer_wait_fence(&worker->peer, 1, worker->seq));
}

static void set(struct worker *worker, uint64_t address, uint64_t size, uint32_t value)
{
    const struct wire_fnMemset in = {.dst = address,
                                     .value = value,
                                     .element_size = 1,
                                     .width = size,
                                     .height = 1,
                                     .hStream = worker->stream,
                                     .seq = ++worker->seq};

    channel_lock(&worker->peer.channel);
    assert_int_equal(wire_fnMemset(&worker->peer.channel, &in), CUDA_SUCCESS);
    channel_unlock(&worker->peer.channel);
    finish(worker);
}

static void poke(struct worker *worker, uint64_t address)
{
    const struct wire_cuLaunchKernelEx in = {.f = worker->poke,
                                             .shape = {1, 1, 1, 1, 1, 1},
                                             .hStream = worker->stream,
                                             .params = &address,
                                             .params_size = sizeof(address)};

    channel_lock(&worker->peer.channel);
    assert_true(peer_launch(&worker->peer, &in));
    channel_unlock(&worker->peer.channel);
    finish(worker);
}

static void copy(struct worker *worker, uint64_t to, uint64_t from, uint64_t size)
{
    const struct wire_cuMemcpyAsync in = {
        .dst = to, .src = from, .ByteCount = size, .hStream = worker->stream, .seq = ++worker->seq};

    channel_lock(&worker->peer.channel);
    assert_int_equal(wire_cuMemcpyAsync(&worker->peer.channel, &in), CUDA_SUCCESS);
    channel_unlock(&worker->peer.channel);
    finish(worker);
}

static void release(struct worker *worker, uint64_t address)
{
    const struct wire_fnGranuleRelease in = {.address = address};

    channel_lock(&worker->peer.channel);
    wire_fnGranuleRelease(&worker->peer.channel, &in);
    channel_unlock(&worker->peer.channel);
}

static uint8_t byte_at(struct worker *worker, uint64_t address)
{
    copy(worker, worker->peer.offer.staging_address, address, 64);
    return *(const uint8_t *)peer_staging(&worker->peer, 0);
}

typedef void use_of_memory(struct worker *worker, uint64_t address);

static void set_all(struct worker *worker, uint64_t address)
{
    set(worker, address, 8 * MIB, 3);
}

static void copy_within(struct worker *worker, uint64_t address)
{
    copy(worker, address, address + 4 * MIB, 4 * MIB);
}

static void write_in_a_kernel(struct worker *worker, uint64_t address)
{
    poke(worker, address + 5 * MIB);
}

/* The first access finds memory, and only the peer notices. */
static void cut_short(uint64_t left, use_of_memory *use)
{
    struct worker worker;
    int file = make_file(8 * MIB);
    uint64_t address;

    start(&worker);
    assert_int_equal(map_at(&worker.peer, file, 0, 8 * MIB, 0, &address), CUDA_SUCCESS);
    set(&worker, address, 8 * MIB, 7);
    assert_int_equal(byte_at(&worker, address + 8 * MIB - 64), 7);
    assert_int_equal(ftruncate(file, (off_t)left), 0);
    use(&worker, address);
    assert_true(server_process_alive(&hostile.server));
    assert_true(witness_is_well(&hostile.witness));
    set(&worker, address, 8 * MIB, 9);
    assert_int_equal(byte_at(&worker, address + 8 * MIB - 64), 9);
    release(&worker, address);
    assert_int_equal(ftruncate(file, 8 * MIB), 0);
    assert_int_equal(map_at(&worker.peer, file, 0, 8 * MIB, 0, &address), CUDA_SUCCESS);
    set(&worker, address, 8 * MIB, 5);
    uint8_t last = 0;
    assert_int_equal(pread(file, &last, 1, 8 * MIB - 1), 1);
    assert_int_equal(last, 5);
    peer_leave(&worker.peer);
    close(file);
}

static void files_that_are_cut_short(void **state)
{
    use_of_memory *const uses[] = {set_all, copy_within, write_in_a_kernel};

    (void)state;
    for (unsigned i = 0; i < sizeof(uses) / sizeof(uses[0]); i++) {
        cut_short(0, uses[i]);
        cut_short(4 * MIB + PAGE, uses[i]);
    }
}

/* The memory is in use while it goes. */
static void cut_short_meanwhile(void **state)
{
    struct worker worker;
    uint64_t address;

    (void)state;
    start(&worker);
    for (unsigned i = 0; i < 20; i++) {
        _cleanup_fd_ int file = make_file(8 * MIB);
        const struct wire_fnMemset in = {
            .element_size = 1, .width = 8 * MIB, .height = 1, .hStream = worker.stream};

        assert_int_equal(map_at(&worker.peer, file, 0, 8 * MIB, 0, &address), CUDA_SUCCESS);
        for (unsigned k = 0; k < 8; k++) {
            struct wire_fnMemset one = in;

            one.dst = address;
            one.seq = ++worker.seq;
            channel_lock(&worker.peer.channel);
            assert_int_equal(wire_fnMemset(&worker.peer.channel, &one), CUDA_SUCCESS);
            channel_unlock(&worker.peer.channel);
        }
        usleep(i * 500);
        assert_int_equal(ftruncate(file, 0), 0);
        finish(&worker);
        release(&worker, address);
    }
    peer_leave(&worker.peer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOSTILE_CASE(descriptors_of_no_shared_memory),
        HOSTILE_CASE(files_have_a_quota),
        HOSTILE_CASE(files_that_are_cut_short),
        HOSTILE_CASE(cut_short_meanwhile),
    };

    return HOSTILE_MAIN(tests);
}
