/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients that come back to another server. Their files of memory lie, come twice or are no files,
 * and their addresses are not theirs. The server refuses each or finds it damaged,
 * and the witness's sums are right.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fd.h"
#include "orders.h"
#include "sock.h"
#include "suspend_result.h"
#include "swap_file.h"
#include "unit.h"

#define GRANULE (2ull << 20)

enum lie {
    LIE_NONE,
    LIE_MAGIC,
    LIE_COUNT,
    LIE_TABLE_HASH,
    LIE_SIZE,
    LIE_OFFSET,
    LIE_FAR_OFFSET,
    LIE_HASH,
    LIE_CUT_TABLE,
    LIE_CUT_CONTENTS,
    LIES,
};

/* Of an entry that is in order but for its lie. */
static struct swap_entry entry_of(uint64_t address, enum lie lie, int file)
{
    struct swap_entry entry = {.address = address, .size = GRANULE, .flags = SWAP_RETURNS};
    unsigned char *contents = calloc(1, GRANULE);
    uint64_t hash;

    assert_non_null(contents);
    memset(contents, 7, GRANULE);
    assert_int_equal(swap_file_begin(file, 1, GRANULE, &entry.offset), 0);
    assert_int_equal(swap_file_write(file, entry.offset, contents, GRANULE, &hash), 0);
    entry.hash = swap_file_hash(&hash, 1) + (lie == LIE_HASH);
    free(contents);
    entry.size *= lie == LIE_SIZE ? 2 : 1;
    if (lie == LIE_OFFSET)
        entry.offset += 4096;
    if (lie == LIE_FAR_OFFSET)
        entry.offset = UINT64_MAX - 4095;
    return entry;
}

static int lying_file(uint64_t address, enum lie lie)
{
    int file = orders_empty_file();
    const struct swap_entry entry = entry_of(address, lie, file);
    uint64_t word = 0;

    assert_int_equal(swap_file_complete(file, &entry, 1), 0);
    if (lie == LIE_MAGIC)
        assert_int_equal(pwrite(file, &word, sizeof(word), 0), sizeof(word));
    word = UINT64_MAX / sizeof(entry);
    if (lie == LIE_COUNT)
        assert_int_equal(pwrite(file, &word, sizeof(word), 8), sizeof(word));
    if (lie == LIE_TABLE_HASH)
        assert_int_equal(pwrite(file, &word, sizeof(word), 16), sizeof(word));
    if (lie == LIE_CUT_TABLE)
        assert_int_equal(ftruncate(file, 30), 0);
    return file;
}

static CUresult bring(struct peer *peer, int fd, uint64_t address, uint64_t size)
{
    const struct socket_message message = {.kind = SOCKET_BLOB, .id = 70, .value = size};
    const struct wire_fnGranuleAdopt in = {.blob = 70, .address = address, .size = size};

    if (sock_send(peer->socket, &message, sizeof(message), &fd, 1))
        return CUDA_ERROR_MPS_RPC_FAILURE;
    return wire_fnGranuleAdopt(&peer->channel, &in);
}

static void all_brought(struct peer *peer)
{
    const struct wire_fnGranulesAdopted in = {};

    channel_lock(&peer->channel);
    wire_fnGranulesAdopted(&peer->channel, &in);
    channel_unlock(&peer->channel);
}

/* `comes`: the server may not have read yet that the client comes suspended. */
static int resume(struct daemon *daemon, bool comes)
{
    int status;

    do
        status = orders_suspend(daemon, SERVER_SUSPEND_END, ORDERS_PID);
    while (comes && status == SUSPEND_NOT);
    return status;
}

/* What is refused at once, what is only when the memory returns, and what is right. */
static void files_that_lie(void **state)
{
    static const bool is_refused[LIES] = {[LIE_MAGIC] = true,
                                          [LIE_COUNT] = true,
                                          [LIE_TABLE_HASH] = true,
                                          [LIE_SIZE] = true,
                                          [LIE_CUT_TABLE] = true};

    for (enum lie lie = LIE_NONE; lie < LIES; lie++) {
        struct peer peer;

        daemon_bring_client(*state, &peer, ORDERS_PID, 0, 10000);
        uint64_t address = peer.offer.window_base;
        _cleanup_fd_ int file = lying_file(address, lie);
        CUresult result = bring(&peer, file, address, GRANULE);
        assert_int_equal(result != CUDA_SUCCESS, is_refused[lie]);
        if (lie == LIE_CUT_CONTENTS)
            assert_int_equal(ftruncate(file, GRANULE + 4096), 0);
        all_brought(&peer);
        int status = resume(*state, !is_refused[lie]);
        if (is_refused[lie])
            assert_int_equal(status, SUSPEND_NOT);
        else
            assert_int_equal(status, lie == LIE_NONE ? SUSPEND_OK : SUSPEND_FILE_DAMAGED);
        peer_leave(&peer);
        orders_await_client_end(*state, ((const struct daemon *)*state)->clients);
        assert_true(witness_is_well(&orders_witness));
    }
}

/* Addresses and sizes that are not the client's, and descriptors that are no file. */
static void places_that_are_wrong(void **state)
{
    int pipes[2];
    struct peer peer;

    daemon_bring_client(*state, &peer, ORDERS_PID, 0, 10000);
    uint64_t address = peer.offer.window_base;
    _cleanup_fd_ int file = lying_file(address, LIE_NONE);
    const struct {
        uint64_t address, size;
    } places[] = {{0, GRANULE},
                  {address + 4096, GRANULE},
                  {orders_witness.memory, GRANULE},
                  {peer.offer.gpu_address, GRANULE},
                  {UINT64_MAX - GRANULE + 1, GRANULE},
                  {address, 0},
                  {address, 4096},
                  {address, UINT64_MAX - GRANULE + 1},
                  {address + 4 * GRANULE, GRANULE}};

    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
        assert_int_not_equal(bring(&peer, file, places[i].address, places[i].size), CUDA_SUCCESS);
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    _cleanup_fd_ int event = eventfd(0, EFD_CLOEXEC);
    _cleanup_fd_ int folder = open("/tmp", O_RDONLY | O_CLOEXEC);
    _cleanup_fd_ int zeros = open("/dev/zero", O_RDWR | O_CLOEXEC);
    const int others[] = {pipes[0], pipes[1], event, folder, zeros, peer.socket};
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        assert_int_not_equal(bring(&peer, others[i], address, GRANULE), CUDA_SUCCESS);
    close(pipes[0]);
    close(pipes[1]);
    assert_true(channel_alive(&peer.channel));
    peer_leave(&peer);
}

/* The same memory comes twice, and is all there twice; then more of it comes. */
static void memory_that_comes_twice(void **state)
{
    struct peer peer;

    daemon_bring_client(*state, &peer, ORDERS_PID, 0, 10000);
    uint64_t address = peer.offer.window_base;
    _cleanup_fd_ int file = lying_file(address, LIE_NONE);
    _cleanup_fd_ int more = lying_file(address + GRANULE, LIE_NONE);

    all_brought(&peer);
    assert_int_equal(bring(&peer, file, address, GRANULE), CUDA_SUCCESS);
    assert_int_not_equal(bring(&peer, file, address, GRANULE), CUDA_SUCCESS);
    all_brought(&peer);
    all_brought(&peer);
    assert_int_equal(bring(&peer, more, address + GRANULE, GRANULE), CUDA_SUCCESS);
    all_brought(&peer);
    orders_suspend(*state, SERVER_SUSPEND_LEAVE, ORDERS_PID);
    orders_suspend(*state, SERVER_SUSPEND_END, ORDERS_PID);
    assert_true(channel_alive(&peer.channel));
    peer_leave(&peer);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, orders_setup, orders_teardown)
    const struct CMUnitTest tests[] = {
        CASE(files_that_lie),
        CASE(places_that_are_wrong),
        CASE(memory_that_comes_twice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
