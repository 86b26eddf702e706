/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients that harm while the daemon has them suspended, checkpointed, detached or moved to another
 * device. They write over the word by which a move is agreed on, spoil the inboxes of their memory,
 * answer late or never, and die in the middle. Others come back with files that lie. Each order is
 * answered, and the witness's sums are right.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "fd.h"
#include "move_obstacle.h"
#include "played_daemon.h"
#include "region.h"
#include "sock.h"
#include "suspend_result.h"
#include "swap_file.h"
#include "unit.h"
#include "witness.h"

#define MIB (1ull << 20)
#define GRANULE (2 * MIB)
#define PID 4711
#define WITNESS_PID 1

static struct witness witness;
static uint64_t seed = 20261129;

static int setup(void **state)
{
    setenv("FUNNEL_SOFT_DEVICES", "2:sms=4,mem=256M", 1);
    if (daemon_setup(state))
        return -1;
    memset(&witness, 0, sizeof(witness));
    daemon_bring_client(*state, &witness.peer, WITNESS_PID, 0, 10000);
    return witness_begin(&witness) && witness_is_well(&witness) ? 0 : -1;
}

static int teardown(void **state)
{
    bool well = witness_is_well(&witness);

    witness_stop(&witness);
    daemon_teardown(state);
    return well ? 0 : -1;
}

/* ---- orders ---- */

static uint32_t last_request = 100;

static uint32_t last_gone; /* the number of the client whose end came last */

/* What else the server has to say is of no interest. */
static union server_any next_message(const struct daemon *daemon)
{
    union server_any message;
    size_t fds = 0;
    ssize_t size = sock_recv(daemon->control, &message, sizeof(message), NULL, 0, &fds, TIMEOUT_MS);

    assert_true(size > 0);
    assert_true(server_message_valid(&message, (size_t)size));
    if (message.header.kind == SERVER_CLIENT_GONE)
        last_gone = message.client_gone.id;
    return message;
}

static int await_result(const struct daemon *daemon, uint32_t request)
{
    union server_any message;

    do
        message = next_message(daemon);
    while (message.header.kind != SERVER_RESULT || message.header.request != request);
    return message.result.status;
}

static void await_end(const struct daemon *daemon, uint32_t id)
{
    while (last_gone != id)
        next_message(daemon);
}

static int empty_file(void)
{
    int fd = memfd_create("swap", MFD_CLOEXEC);

    assert_true(fd >= 0);
    return fd;
}

/* The end of a socket with two descriptors of a file. */
static int make_envelope(int file)
{
    const int files[2] = {file, file};
    int pair[2];

    assert_int_equal(sock_pair(pair), 0);
    assert_int_equal(sock_send(pair[0], "", 1, files, 2), 0);
    close(pair[0]);
    return pair[1];
}

static uint32_t send_suspend(struct daemon *daemon, enum server_suspend kind, int32_t pid)
{
    struct server_suspend_client order;
    _cleanup_fd_ int file = -1;
    _cleanup_fd_ int envelope = -1;

    server_message_init(&order, SERVER_SUSPEND_CLIENT, ++last_request);
    order.pid = pid;
    order.suspend = kind;
    if (kind == SERVER_SUSPEND_SAVE || kind == SERVER_SUSPEND_DETACH) {
        file = empty_file();
        envelope = make_envelope(file);
    }
    daemon_say(daemon, &order, envelope >= 0 ? &envelope : NULL);
    return last_request;
}

static int order_suspend(struct daemon *daemon, enum server_suspend kind, int32_t pid)
{
    return await_result(daemon, send_suspend(daemon, kind, pid));
}

static uint32_t send_move(struct daemon *daemon, uint32_t id, bool withdrawn)
{
    struct server_move_client order;

    server_message_init(&order, SERVER_MOVE_CLIENT, ++last_request);
    order.id = id;
    order.withdrawn = withdrawn;
    order.device = 2; /* the second */
    daemon_say(daemon, &order, NULL);
    return last_request;
}

/* ---- the client ---- */

struct offender {
    struct peer peer;
    uint64_t address;
    uint32_t id;
    int inbox; /* of its granule */
};

static struct offender begin(struct daemon *daemon)
{
    struct offender offender = {.inbox = -1};

    daemon_bring_client(daemon, &offender.peer, PID, 0, 10000);
    offender.id = daemon->clients;
    assert_int_equal(
        peer_take_granule(&offender.peer, 16 * MIB, &offender.address, &offender.inbox),
        CUDA_SUCCESS);
    return offender;
}

/* The next client comes after its end. */
static void leave(const struct daemon *daemon, struct offender *offender)
{
    fd_close(&offender->inbox);
    peer_leave(&offender->peer);
    await_end(daemon, offender->id);
}

static bool is_served(struct offender *offender)
{
    const struct wire_cuMemGetInfo_v2 in = {0};
    struct wire_cuMemGetInfo_v2_reply out;

    return wire_cuMemGetInfo_v2(&offender->peer.channel, &in, &out) == CUDA_SUCCESS;
}

static void write_word(struct offender *offender, uint32_t word)
{
    atomic_store(&offender->peer.channel.region->leave, word);
}

static uint32_t some_word(void)
{
    uint32_t pick = unit_random(&seed) % 10;

    return pick < 8 ? pick | (unit_random(&seed) % 4 ? 0 : unit_random(&seed) << 8)
                    : unit_random(&seed);
}

/* ---- what they do ---- */

static const enum server_suspend kinds[] = {SERVER_SUSPEND_LEAVE, SERVER_SUSPEND_SAVE,
                                            SERVER_SUSPEND_LOCK, SERVER_SUSPEND_DETACH};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

/* It stands still, and says something else. */
static void words_while_suspended(void **state)
{
    for (unsigned i = 0; i < 5 * KINDS; i++) {
        struct offender offender = begin(*state);

        write_word(&offender, some_word());
        uint32_t request = send_suspend(*state, kinds[i % KINDS], PID);
        write_word(&offender, some_word());
        await_result(*state, request);
        write_word(&offender, some_word());
        order_suspend(*state, SERVER_SUSPEND_END, PID);
        leave(*state, &offender);
        assert_true(witness_is_well(&witness));
    }
}

static void dies_in_the_middle(void **state)
{
    for (unsigned i = 0; i < 4 * KINDS; i++) {
        struct offender offender = begin(*state);
        uint32_t request = send_suspend(*state, kinds[i % KINDS], PID);

        if (i / KINDS % 2)
            usleep(1000 * (i / KINDS)); /* at another point */
        fd_close(&offender.inbox);
        peer_leave(&offender.peer);
        await_result(*state, request);
        await_end(*state, offender.id);
        assert_true(witness_is_well(&witness));
    }
}

/* The next order comes before the answer to the first, and again before its own. */
static void orders_that_overtake_each_other(void **state)
{
    struct offender offender = begin(*state);
    uint32_t requests[12];
    const unsigned count = sizeof(requests) / sizeof(*requests);

    for (unsigned i = 0; i < count; i++) {
        requests[i] = send_suspend(*state, i % 3 == 2 ? SERVER_SUSPEND_END : kinds[i % 2], PID);
        write_word(&offender, some_word());
    }
    for (unsigned i = 0; i < count; i++)
        send_suspend(*state, SERVER_SUSPEND_END, PID);
    order_suspend(*state, SERVER_SUSPEND_END, PID);
    write_word(&offender, LEAVE_NONE);
    assert_true(is_served(&offender));
    leave(*state, &offender);
}

/* Neither side of an inbox works any more. */
static void inboxes_that_are_shut(void **state)
{
    for (unsigned i = 0; i < KINDS; i++) {
        struct offender offender = begin(*state);

        shutdown(offender.inbox, SHUT_RDWR);
        order_suspend(*state, kinds[i], PID);
        order_suspend(*state, SERVER_SUSPEND_END, PID);
        leave(*state, &offender);
        assert_true(witness_is_well(&witness));
    }
}

/* It takes the memory out. Nothing goes back, as the connection of the client: the server would
 * keep that open after the client's end, and not hear of it. */
static void inboxes_that_are_robbed(void **state)
{
    for (unsigned i = 0; i < KINDS; i++) {
        struct offender offender = begin(*state);
        _cleanup_fd_ int stolen = -1;
        size_t count = 0;
        char byte;

        sock_recv(offender.inbox, &byte, sizeof(byte), &stolen, 1, &count, 0);
        assert_int_not_equal(sock_send(offender.inbox, "", 1, &offender.peer.socket, 1), 0);
        assert_int_not_equal(order_suspend(*state, kinds[i], PID), SUSPEND_NO_CLIENT);
        order_suspend(*state, SERVER_SUSPEND_END, PID);
        leave(*state, &offender);
        assert_true(witness_is_well(&witness));
    }
}

/* ---- moves ---- */

/* The order is taken back, and later the client behaves as if it had been granted. */
static void a_move_that_is_never_answered(void **state)
{
    struct offender offender = begin(*state);

    send_move(*state, offender.id, false);
    assert_true(is_served(&offender));
    send_move(*state, offender.id, true);
    assert_true(is_served(&offender));
    write_word(&offender, LEAVE_GRANTED);
    assert_true(is_served(&offender));
    write_word(&offender, LEAVE_ASKED);
    assert_true(is_served(&offender));
    leave(*state, &offender);
}

static void await_word(struct offender *offender, uint32_t word)
{
    for (int waited = 0; waited < TIMEOUT_MS; waited++) {
        if (channel_leave(&offender->peer.channel) == word)
            return;
        usleep(1000);
    }
    fail();
}

/* A refusal is read later than the order to stand still. From then on the client knows that nothing
 * of it is in flight. */
static void stands_still_with_a_refusal(void **state)
{
    struct offender offender = begin(*state);

    write_word(&offender, LEAVE_REFUSED | OBSTACLE_CALL << LEAVE_OBSTACLE_SHIFT);
    assert_int_equal(order_suspend(*state, SERVER_SUSPEND_LEAVE, PID), SUSPEND_OK);
    send_move(*state, offender.id, true);
    await_word(&offender, LEAVE_SETTLED);
    assert_int_equal(order_suspend(*state, SERVER_SUSPEND_END, PID), SUSPEND_OK);
    assert_true(is_served(&offender));
    await_word(&offender, LEAVE_NONE);
    leave(*state, &offender);
}

static uint64_t memory_on(struct daemon *daemon, uint32_t id, unsigned device)
{
    struct server_status status;
    union server_any message;
    uint64_t used = UINT64_MAX;

    server_message_init(&status, SERVER_STATUS, ++last_request);
    daemon_say(daemon, &status, NULL);
    for (;;) {
        message = next_message(daemon);
        if (message.header.kind == SERVER_STATUS_END)
            return used;
        if (message.header.kind == SERVER_STATUS_ROW && message.status_row.id == id)
            used = message.status_row.memory_used[device];
    }
}

/* Granted with a copy of its memory on the other device, it stays. Until it says so it is charged
 * for both. */
static void a_grant_that_is_not_taken(void **state)
{
    struct offender offender = begin(*state);

    for (unsigned i = 0; i < 4; i++) {
        uint32_t request = send_move(*state, offender.id, false);

        await_word(&offender, LEAVE_WANTED);
        write_word(&offender, LEAVE_ASKED);
        await_word(&offender, LEAVE_GRANTED);
        assert_true(memory_on(*state, offender.id, 1) >= 16 * MIB);
        write_word(&offender, LEAVE_REFUSED | OBSTACLE_CALL << LEAVE_OBSTACLE_SHIFT);
        assert_int_equal(await_result(*state, request), OBSTACLE_CALL);
        assert_true(is_served(&offender));
        await_word(&offender, LEAVE_NONE);
        assert_int_equal(memory_on(*state, offender.id, 1), 0);
    }
    leave(*state, &offender);
}

/* It asks again and again, or hangs up during the copies. */
static void moves_with_any_word(void **state)
{
    for (unsigned i = 0; i < 24; i++) {
        struct offender offender = begin(*state);

        send_move(*state, offender.id, false);
        for (unsigned j = 0; j < 1 + i % 8; j++) {
            write_word(&offender, j % 2 ? some_word() : LEAVE_ASKED);
            if (i % 4 == 0)
                sched_yield();
        }
        if (i % 2)
            send_move(*state, offender.id, true);
        leave(*state, &offender);
        assert_true(witness_is_well(&witness));
    }
}

/* A move is ordered while it is suspended, and the other way round. */
/* Each is work of the daemon's, and the client answers for it by a word. */
static void wishes_without_end(void **state)
{
    struct offender offender = begin(*state);
    const struct wire_fnMove in = {.server = 12345};
    uint64_t began = clock_ns(), passed, wishes = 0;

    for (unsigned i = 0; i < 300; i++) {
        wishes += wire_fnMove(&offender.peer.channel, &in) == CUDA_SUCCESS;
        write_word(&offender, LEAVE_NONE);
    }
    passed = clock_ns() - began;
    assert_true(wishes >= 16);
    assert_true(wishes <= 16 + passed / (20 * NS_PER_MS));
    leave(*state, &offender);
}

static void moves_and_suspensions(void **state)
{
    for (unsigned i = 0; i < 20; i++) {
        struct offender offender = begin(*state);

        send_move(*state, offender.id, false);
        write_word(&offender, LEAVE_ASKED);
        uint32_t request = send_suspend(*state, kinds[i % KINDS], PID);
        send_move(*state, offender.id, true);
        write_word(&offender, i % 2 ? LEAVE_REFUSED : LEAVE_WANTED);
        await_result(*state, request);
        order_suspend(*state, SERVER_SUSPEND_END, PID);
        leave(*state, &offender);
        assert_true(witness_is_well(&witness));
    }
}

/* ---- files ---- */

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
    int file = empty_file();
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
        status = order_suspend(daemon, SERVER_SUSPEND_END, PID);
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

        daemon_bring_client(*state, &peer, PID, 0, 10000);
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
        await_end(*state, ((const struct daemon *)*state)->clients);
        assert_true(witness_is_well(&witness));
    }
}

/* Addresses and sizes that are not the client's, and descriptors that are no file. */
static void places_that_are_wrong(void **state)
{
    int pipes[2];
    struct peer peer;

    daemon_bring_client(*state, &peer, PID, 0, 10000);
    uint64_t address = peer.offer.window_base;
    _cleanup_fd_ int file = lying_file(address, LIE_NONE);
    const struct {
        uint64_t address, size;
    } places[] = {{0, GRANULE},
                  {address + 4096, GRANULE},
                  {witness.memory, GRANULE},
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

    daemon_bring_client(*state, &peer, PID, 0, 10000);
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
    order_suspend(*state, SERVER_SUSPEND_LEAVE, PID);
    order_suspend(*state, SERVER_SUSPEND_END, PID);
    assert_true(channel_alive(&peer.channel));
    peer_leave(&peer);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(words_while_suspended),
        CASE(dies_in_the_middle),
        CASE(orders_that_overtake_each_other),
        CASE(inboxes_that_are_shut),
        CASE(inboxes_that_are_robbed),
        CASE(a_move_that_is_never_answered),
        CASE(a_grant_that_is_not_taken),
        CASE(moves_with_any_word),
        CASE(stands_still_with_a_refusal),
        CASE(moves_and_suspensions),
        CASE(files_that_lie),
        CASE(wishes_without_end),
        CASE(places_that_are_wrong),
        CASE(memory_that_comes_twice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
