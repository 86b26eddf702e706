/* SPDX-License-Identifier: Apache-2.0 */
/* Messages arrive whole and in order, and a peer that does not read is disconnected, not waited
 * for.
 */
#include "connection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sock.h"
#include "unit.h"

struct witness {
    struct connection connection;
    unsigned messages;
    unsigned closed;
    char last;
    bool close_at_once;
};

static void on_message(void *owner, const void *data, size_t size)
{
    struct witness *witness = owner;

    witness->messages++;
    witness->last = *(const char *)data;
    if (witness->close_at_once)
        connection_close(&witness->connection);
}

static void on_closed(void *owner)
{
    struct witness *witness = owner;

    witness->closed++;
    connection_close(&witness->connection);
}

static const struct connection_handlers handlers = {on_message, on_closed};

static struct event_base *base;
static struct witness witness;
static int far_end;

static int open_pair(void **state)
{
    int ends[2];

    memset(&witness, 0, sizeof(witness));
    base = event_base_new();
    if (sock_pair(ends))
        return -1;
    far_end = ends[1];
    return connection_open(&witness.connection, base, ends[0], &handlers, &witness);
}

static int close_pair(void **state)
{
    connection_close(&witness.connection);
    close(far_end);
    event_base_free(base);
    return 0;
}

static void turn(void)
{
    event_base_loop(base, EVLOOP_NONBLOCK);
}

static void test_messages(void **state)
{
    assert_int_equal(sock_send(far_end, "a", 1, NULL, 0), 0);
    assert_int_equal(sock_send(far_end, "b", 1, NULL, 0), 0);
    turn();
    assert_int_equal(witness.messages, 2);
    assert_int_equal(witness.last, 'b');
    close(far_end);
    far_end = -1;
    turn();
    assert_int_equal(witness.closed, 1);
}

static void test_closed_by_its_handler(void **state)
{
    witness.close_at_once = true;
    sock_send(far_end, "a", 1, NULL, 0);
    sock_send(far_end, "b", 1, NULL, 0);
    turn();
    assert_int_equal(witness.messages, 1);
    assert_int_equal(witness.closed, 0);
    assert_int_equal(witness.connection.fd, -1);
    assert_int_equal(connection_send(&witness.connection, "x", 1, -1), -EPIPE);
}

static void test_paused(void **state)
{
    connection_listen(&witness.connection, false);
    sock_send(far_end, "a", 1, NULL, 0);
    turn();
    assert_int_equal(witness.messages, 0);
    connection_listen(&witness.connection, true);
    turn();
    assert_int_equal(witness.messages, 1);
}

/* A peer that never stops does not keep other connections from having their turn. */
static void test_so_many_in_a_turn(void **state)
{
    const unsigned sent = 150;
    unsigned turns = 0;

    for (unsigned i = 0; i < sent; i++)
        assert_int_equal(sock_send(far_end, "a", 1, NULL, 0), 0);
    while (witness.messages < sent) {
        unsigned before = witness.messages;

        event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
        assert_in_range(witness.messages - before, 1, 64);
        turns++;
    }
    assert_int_equal(turns, 3);
}

static void test_queue_keeps_order(void **state)
{
    char data[4096] = "";
    unsigned sent = 0;
    size_t fds;

    for (; witness.connection.queued < 65536; sent++) {
        data[0] = (char)(sent % 100);
        assert_int_equal(connection_send(&witness.connection, data, sizeof(data), -1), 0);
    }
    for (unsigned i = 0; i < sent; i++) {
        turn();
        assert_int_equal(sock_recv(far_end, data, sizeof(data), NULL, 0, &fds, 1000), sizeof(data));
        assert_int_equal(data[0], i % 100);
    }
    assert_int_equal(witness.connection.queued, 0);
}

static void test_never_reading_breaks_it(void **state)
{
    char data[8192] = "";
    int error = 0;

    for (int i = 0; i < 10000 && !error; i++)
        error = connection_send(&witness.connection, data, sizeof(data), -1);
    assert_int_equal(error, -ENOBUFS);
    assert_int_equal(witness.closed, 0); /* not from inside connection_send */
    turn();
    assert_int_equal(witness.closed, 1);
}

static void test_descriptor_travels_and_is_closed_here(void **state)
{
    int pipe_ends[2], got = -1;
    size_t fds = 0;
    char byte;

    assert_int_equal(pipe(pipe_ends), 0);
    assert_int_equal(connection_send(&witness.connection, "x", 1, pipe_ends[1]), 0);
    assert_int_equal(write(pipe_ends[1], "y", 1), -1);
    assert_int_equal(errno, EBADF);
    assert_int_equal(sock_recv(far_end, &byte, 1, &got, 1, &fds, 1000), 1);
    assert_int_equal(fds, 1);
    assert_int_equal(write(got, "y", 1), 1);
    close(got);
    close(pipe_ends[0]);
}

/* A server that does not read while its user connects again and again. */
static void test_descriptors_do_not_pile_up(void **state)
{
    unsigned sent = 0;

    while (!connection_send(&witness.connection, "x", 1, dup(far_end)))
        assert_in_range(++sent, 1, 2000);
    assert_true(witness.connection.queued < 65536);
    turn();
    assert_int_equal(witness.closed, 1);
}

int main(void)
{
#define WITH_PAIR(test) cmocka_unit_test_setup_teardown(test, open_pair, close_pair)
    const struct CMUnitTest tests[] = {
        WITH_PAIR(test_messages),
        WITH_PAIR(test_closed_by_its_handler),
        WITH_PAIR(test_paused),
        WITH_PAIR(test_so_many_in_a_turn),
        WITH_PAIR(test_queue_keeps_order),
        WITH_PAIR(test_never_reading_breaks_it),
        WITH_PAIR(test_descriptors_do_not_pile_up),
        WITH_PAIR(test_descriptor_travels_and_is_closed_here),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
