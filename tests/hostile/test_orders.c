/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients that harm while the daemon has them suspended, checkpointed, detached or moved to another
 * device. They write over the word by which a move is agreed on, and spoil the inboxes of their
 * memory. They answer late or never, and die in the middle. Each order is answered, and the
 * witness's sums are right.
 */
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "fd.h"
#include "move_obstacle.h"
#include "orders.h"
#include "region.h"
#include "sock.h"
#include "suspend_result.h"
#include "unit.h"

/* Of each client. Its copies last while the client acts; under sanitizers they take long. */
#define MEMORY (4ull << 20)

static uint64_t seed = 20261129;

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

    daemon_bring_client(daemon, &offender.peer, ORDERS_PID, 0, 10000);
    offender.id = daemon->clients;
    assert_int_equal(peer_take_granule(&offender.peer, MEMORY, &offender.address, &offender.inbox),
                     CUDA_SUCCESS);
    return offender;
}

/* The next client comes after its end. */
static void leave(const struct daemon *daemon, struct offender *offender)
{
    fd_close(&offender->inbox);
    peer_leave(&offender->peer);
    orders_await_client_end(daemon, offender->id);
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
        uint32_t request = orders_send_suspend(*state, kinds[i % KINDS], ORDERS_PID);
        write_word(&offender, some_word());
        orders_await_result(*state, request);
        write_word(&offender, some_word());
        orders_suspend(*state, SERVER_SUSPEND_END, ORDERS_PID);
        leave(*state, &offender);
        assert_true(witness_is_well(&orders_witness));
    }
}

static void dies_in_the_middle(void **state)
{
    for (unsigned i = 0; i < 4 * KINDS; i++) {
        struct offender offender = begin(*state);
        uint32_t request = orders_send_suspend(*state, kinds[i % KINDS], ORDERS_PID);

        if (i / KINDS % 2)
            usleep(1000 * (i / KINDS)); /* at another point */
        fd_close(&offender.inbox);
        peer_leave(&offender.peer);
        orders_await_result(*state, request);
        orders_await_client_end(*state, offender.id);
        assert_true(witness_is_well(&orders_witness));
    }
}

/* The next order comes before the answer to the first, and again before its own. */
static void orders_that_overtake_each_other(void **state)
{
    struct offender offender = begin(*state);
    uint32_t requests[12];
    const unsigned count = sizeof(requests) / sizeof(*requests);

    for (unsigned i = 0; i < count; i++) {
        requests[i] =
            orders_send_suspend(*state, i % 3 == 2 ? SERVER_SUSPEND_END : kinds[i % 2], ORDERS_PID);
        write_word(&offender, some_word());
    }
    for (unsigned i = 0; i < count; i++)
        orders_send_suspend(*state, SERVER_SUSPEND_END, ORDERS_PID);
    orders_suspend(*state, SERVER_SUSPEND_END, ORDERS_PID);
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
        orders_suspend(*state, kinds[i], ORDERS_PID);
        orders_suspend(*state, SERVER_SUSPEND_END, ORDERS_PID);
        leave(*state, &offender);
        assert_true(witness_is_well(&orders_witness));
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
        assert_int_not_equal(orders_suspend(*state, kinds[i], ORDERS_PID), SUSPEND_NO_CLIENT);
        orders_suspend(*state, SERVER_SUSPEND_END, ORDERS_PID);
        leave(*state, &offender);
        assert_true(witness_is_well(&orders_witness));
    }
}

/* ---- moves ---- */

/* The order is taken back, and later the client behaves as if it had been granted. */
static void a_move_that_is_never_answered(void **state)
{
    struct offender offender = begin(*state);

    orders_send_move(*state, offender.id, false);
    assert_true(is_served(&offender));
    orders_send_move(*state, offender.id, true);
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
    assert_int_equal(orders_suspend(*state, SERVER_SUSPEND_LEAVE, ORDERS_PID), SUSPEND_OK);
    orders_send_move(*state, offender.id, true);
    await_word(&offender, LEAVE_SETTLED);
    assert_int_equal(orders_suspend(*state, SERVER_SUSPEND_END, ORDERS_PID), SUSPEND_OK);
    assert_true(is_served(&offender));
    await_word(&offender, LEAVE_NONE);
    leave(*state, &offender);
}

static uint64_t memory_on(struct daemon *daemon, uint32_t id, unsigned device)
{
    union server_any message;
    uint64_t used = UINT64_MAX;

    orders_send_status(daemon);
    for (;;) {
        message = orders_next_message(daemon);
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
        uint32_t request = orders_send_move(*state, offender.id, false);

        await_word(&offender, LEAVE_WANTED);
        write_word(&offender, LEAVE_ASKED);
        await_word(&offender, LEAVE_GRANTED);
        assert_true(memory_on(*state, offender.id, 1) >= MEMORY);
        write_word(&offender, LEAVE_REFUSED | OBSTACLE_CALL << LEAVE_OBSTACLE_SHIFT);
        assert_int_equal(orders_await_result(*state, request), OBSTACLE_CALL);
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

        orders_send_move(*state, offender.id, false);
        for (unsigned j = 0; j < 1 + i % 8; j++) {
            write_word(&offender, j % 2 ? some_word() : LEAVE_ASKED);
            if (i % 4 == 0)
                sched_yield();
        }
        if (i % 2)
            orders_send_move(*state, offender.id, true);
        leave(*state, &offender);
        assert_true(witness_is_well(&orders_witness));
    }
}

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

/* A move is ordered while it is suspended, and the other way round. */
static void moves_and_suspensions(void **state)
{
    for (unsigned i = 0; i < 20; i++) {
        struct offender offender = begin(*state);

        orders_send_move(*state, offender.id, false);
        write_word(&offender, LEAVE_ASKED);
        uint32_t request = orders_send_suspend(*state, kinds[i % KINDS], ORDERS_PID);
        orders_send_move(*state, offender.id, true);
        write_word(&offender, i % 2 ? LEAVE_REFUSED : LEAVE_WANTED);
        orders_await_result(*state, request);
        orders_suspend(*state, SERVER_SUSPEND_END, ORDERS_PID);
        leave(*state, &offender);
        assert_true(witness_is_well(&orders_witness));
    }
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, orders_setup, orders_teardown)
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
        CASE(wishes_without_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
