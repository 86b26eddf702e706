/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server as its daemon sees it: requests, responses, and the end of clients. The test plays the
 * daemon.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "claims.h"
#include "cuda_abi.h"
#include "fd.h"
#include "peer.h"
#include "played_daemon.h"
#include "server_protocol.h"
#include "shm.h"
#include "sock.h"
#include "unit.h"
#include "witness.h"

#define MIB (1ull << 20)

static int wait_for_end(struct daemon *daemon)
{
    int status;

    for (int waited = 0; waited < TIMEOUT_MS; waited += 5) {
        if (waitpid(daemon->pid, &status, WNOHANG) == daemon->pid) {
            daemon->pid = -1;
            return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        }
        usleep(5000);
    }
    return -1;
}

static unsigned ask_status(struct daemon *daemon, struct server_status_row *ret_rows,
                           unsigned capacity)
{
    struct server_status status;
    union server_any message;
    unsigned rows = 0;
    size_t fds = 0;

    server_message_init(&status, SERVER_STATUS, 77);
    daemon_say(daemon, &status, NULL);
    for (;;) {
        assert_true(
            sock_recv(daemon->control, &message, sizeof(message), NULL, 0, &fds, TIMEOUT_MS) > 0);
        if (message.header.kind == SERVER_HEARTBEAT)
            continue;
        assert_int_equal(message.header.request, 77);
        if (message.header.kind == SERVER_STATUS_END)
            break;
        assert_int_equal(message.header.kind, SERVER_STATUS_ROW);
        assert_true(rows < capacity);
        ret_rows[rows++] = message.status_row;
    }
    assert_int_equal(message.status_end.client_count, rows);
    return rows;
}

static void status_has_a_row_for_each_client(void **state)
{
    struct server_status_row rows[4];
    struct peer a, b;
    union server_any message;
    uint64_t address;

    assert_int_equal(ask_status(*state, rows, 4), 0);
    daemon_bring_client(*state, &a, 1001, 0, 10000);
    daemon_bring_client(*state, &b, 1002, 64 * MIB, 10000);
    assert_int_equal(peer_make_granule(&b, 4 * MIB, &address), CUDA_SUCCESS);
    assert_int_equal(ask_status(*state, rows, 4), 2);
    assert_int_equal(rows[0].id, 1);
    assert_int_equal(rows[1].id, 2);
    assert_int_equal(rows[1].state, SERVER_CLIENT_ACTIVE);
    assert_int_equal(rows[1].memory_used[0], 4 * MIB);
    assert_int_equal(rows[1].limits.memory_limit[0], 64 * MIB);
    peer_leave(&a);
    daemon_receive(*state, SERVER_CLIENT_GONE, &message);
    assert_int_equal(message.client_gone.id, 1);
    assert_int_equal(message.client_gone.status, 0);
    assert_int_equal(ask_status(*state, rows, 4), 1);
    peer_leave(&b);
}

static CUresult order(struct daemon *daemon, const void *message)
{
    union server_any answer;

    daemon_say(daemon, message, NULL);
    daemon_receive(daemon, SERVER_RESULT, &answer);
    assert_int_equal(answer.header.request, ((const struct server_header *)message)->request);
    return (CUresult)answer.result.status;
}

static void terminated_client_stays_until_it_leaves(void **state)
{
    struct server_terminate_client terminate;
    struct server_status_row rows[4];
    union server_any message;
    struct peer peer;

    daemon_bring_client(*state, &peer, 1001, 0, 10000);
    server_message_init(&terminate, SERVER_TERMINATE_CLIENT, 5);
    terminate.pid = 999;
    assert_int_equal(order(*state, &terminate), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(channel_error(&peer.channel), CUDA_SUCCESS);
    terminate.pid = 1001;
    assert_int_equal(order(*state, &terminate), CUDA_SUCCESS);
    assert_int_equal(channel_error(&peer.channel), CUDA_ERROR_MPS_CLIENT_TERMINATED);
    assert_int_equal(ask_status(*state, rows, 4), 1);
    assert_int_equal(rows[0].state, SERVER_CLIENT_INACTIVE);
    peer_leave(&peer);
    daemon_receive(*state, SERVER_CLIENT_GONE, &message);
    assert_int_equal(message.client_gone.status, CUDA_ERROR_MPS_CLIENT_TERMINATED);
}

static void memory_limit_can_change(void **state)
{
    struct server_set_limits limits;
    struct peer peer;
    uint64_t address;

    daemon_bring_client(*state, &peer, 1001, 4 * MIB, 10000);
    assert_int_equal(peer_make_granule(&peer, 8 * MIB, &address), CUDA_ERROR_OUT_OF_MEMORY);
    server_message_init(&limits, SERVER_SET_LIMITS, 6);
    limits.pid = 1001;
    limits.limits.sm_centipercent = 10000;
    limits.limits.memory_limit[0] = 8 * MIB;
    assert_int_equal(order(*state, &limits), CUDA_SUCCESS);
    assert_int_equal(peer_make_granule(&peer, 8 * MIB, &address), CUDA_SUCCESS);
    peer_leave(&peer);
}

static void share_shows_in_the_device_table(void **state)
{
    struct device_record record;
    struct peer whole, half;

    daemon_bring_client(*state, &whole, 1001, 0, 10000);
    assert_int_equal(pread_all(whole.fds[ATTACH_FD_DEVICES], &record, sizeof(record), 0), 0);
    int all = record.attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT];
    daemon_bring_client(*state, &half, 1002, 0, 5000);
    assert_int_equal(pread_all(half.fds[ATTACH_FD_DEVICES], &record, sizeof(record), 0), 0);
    assert_int_equal(record.attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT], all / 2);
    assert_int_equal(half.offer.sm_centipercent, 5000);
    peer_leave(&whole);
    peer_leave(&half);
}

static void another_build_is_refused(void **state)
{
    struct daemon *daemon = *state;
    struct server_client client;
    union server_any message;
    struct peer peer;
    int pair[2];

    assert_int_equal(sock_pair(pair), 0);
    server_message_init(&client, SERVER_CLIENT, 0);
    client.id = 7;
    client.identity.pid = 1001;
    client.limits.sm_centipercent = 10000;
    client.hello = peer_hello();
    client.hello.api_hash++;
    daemon_say(daemon, &client, &pair[1]);
    close(pair[1]);
    assert_false(peer_adopt(&peer, pair[0]));
    assert_int_equal(peer.offer.welcome.status, CUDA_ERROR_MPS_CONNECTION_FAILED);
    daemon_receive(daemon, SERVER_CLIENT_GONE, &message);
    assert_int_equal(message.client_gone.id, 7);
    peer_leave(&peer);
}

static void leaves_after_its_last_client(void **state)
{
    struct daemon *daemon = *state;
    struct server_shutdown shutdown;
    struct peer peer;

    daemon_bring_client(daemon, &peer, 1001, 0, 10000);
    server_message_init(&shutdown, SERVER_SHUTDOWN, 0);
    daemon_say(daemon, &shutdown, NULL);
    usleep(100000);
    assert_int_equal(waitpid(daemon->pid, NULL, WNOHANG), 0);
    peer_leave(&peer);
    assert_int_equal(wait_for_end(daemon), 0);
}

static void leaves_at_once_when_told_so(void **state)
{
    struct daemon *daemon = *state;
    struct server_shutdown shutdown;
    struct peer peer;

    daemon_bring_client(daemon, &peer, 1001, 0, 10000);
    server_message_init(&shutdown, SERVER_SHUTDOWN, 0);
    shutdown.force = 1;
    daemon_say(daemon, &shutdown, NULL);
    assert_int_equal(wait_for_end(daemon), 0);
    assert_true(peer_is_cut_off(&peer));
    assert_int_equal(channel_error(&peer.channel), CUDA_ERROR_MPS_RPC_FAILURE);
    peer_leave(&peer);
}

static void outlives_its_daemon_for_its_clients(void **state)
{
    struct daemon *daemon = *state;
    struct peer peer;
    uint64_t address;

    daemon_bring_client(daemon, &peer, 1001, 0, 10000);
    fd_close(&daemon->control);
    usleep(100000);
    assert_int_equal(peer_make_granule(&peer, 2 * MIB, &address), CUDA_SUCCESS);
    peer_leave(&peer);
    assert_int_equal(wait_for_end(daemon), 0);
}

static bool has_said(struct daemon *daemon, unsigned kind)
{
    union server_any message = {.header.kind = 0};
    size_t fds = 0;

    while (message.header.kind != kind)
        if (sock_recv(daemon->control, &message, sizeof(message), NULL, 0, &fds, 0) <= 0)
            return false;
    return true;
}

/* Else a program that starts because of the error would still get this server. */
static void tells_its_daemon_of_a_fault_first(void **state)
{
    struct daemon *daemon = *state;
    struct peer peer;

    daemon_bring_client(daemon, &peer, 1001, 0, 10000);
    assert_true(peer_poke(&peer, 0x1000));
    for (int waited = 0; waited < TIMEOUT_MS && !channel_error(&peer.channel); waited++)
        usleep(1000);
    assert_int_equal(channel_error(&peer.channel), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_true(has_said(daemon, SERVER_FAULT));
    assert_int_equal(wait_for_end(daemon), 3);
    peer_leave(&peer);
}

static CUresult attach_as(struct daemon *daemon, uint32_t uid, uint32_t owner, struct peer *peer)
{
    const struct server_identity identity = {.pid = 2000, .uid = uid, .owner = owner};
    union server_any message;

    if (peer_adopt(peer, daemon_pass_on(daemon, &identity, 0, 10000))) {
        daemon_receive(daemon, SERVER_CLIENT_ATTACHED, &message);
        return CUDA_SUCCESS;
    }
    daemon_receive(daemon, SERVER_CLIENT_GONE, &message);
    assert_int_equal(message.client_gone.status, peer->offer.welcome.status);
    return (CUresult)peer->offer.welcome.status;
}

/* In a server of several users no user but the server's own takes all slots. */
static void a_user_has_so_many_slots(void **state)
{
    const uint32_t mine = getuid() + 1, theirs = getuid() + 2, subordinate = getuid() + 100000;
    struct server_set_quotas order_of_daemon;
    struct peer first, second, third, other;

    server_message_init(&order_of_daemon, SERVER_SET_QUOTAS, 0);
    quotas_init(&order_of_daemon.quotas);
    order_of_daemon.quotas.value[QUOTA_SLOTS] = 2;
    daemon_say(*state, &order_of_daemon, NULL);
    assert_int_equal(attach_as(*state, mine, mine, &first), CUDA_SUCCESS);
    assert_int_equal(attach_as(*state, subordinate, mine, &second), CUDA_SUCCESS);
    assert_int_equal(attach_as(*state, mine, mine, &third), CUDA_ERROR_MPS_MAX_CLIENTS_REACHED);
    assert_int_equal(attach_as(*state, theirs, theirs, &other), CUDA_SUCCESS);
    peer_leave(&first);
    peer_leave(&second);
    peer_leave(&third);
    peer_leave(&other);
}

/* What the server answers to a client with that token that says it had the window at `base`. */
static int claim(struct daemon *daemon, unsigned char token, uint64_t base, struct peer *ret_peer)
{
    const struct server_identity identity = {.pid = getpid(), .uid = getuid()};
    struct hello hello = peer_hello();
    union server_any message;

    memset(hello.token, token, sizeof(hello.token));
    hello.window_base = base;
    bool attached = peer_adopt(ret_peer, daemon_pass_on_with(daemon, &identity, &hello, 0, 10000));
    daemon_receive(daemon, attached ? SERVER_CLIENT_ATTACHED : SERVER_CLIENT_GONE, &message);
    return ret_peer->offer.welcome.status;
}

/* The server is killed, and others of its clients are faster. */
static void a_window_goes_back_to_its_client_alone(void **state)
{
    struct daemon *daemon = *state;
    struct peer owner, thief, nobody;

    assert_int_equal(claim(daemon, 7, 0, &owner), 0);
    assert_int_equal(claim(daemon, 8, 0, &thief), 0);
    uint64_t base = owner.offer.window_base;
    assert_int_not_equal(thief.offer.window_base, base);
    daemon_kill_server(daemon);
    peer_leave(&owner);
    peer_leave(&thief);
    daemon_start_server(daemon);
    assert_int_equal(claim(daemon, 8, base, &thief), CUDA_ERROR_MPS_CONNECTION_FAILED);
    peer_leave(&thief);
    assert_int_equal(claim(daemon, 0, base, &nobody), CUDA_ERROR_MPS_CONNECTION_FAILED);
    peer_leave(&nobody);
    assert_int_equal(claim(daemon, 7, base, &owner), 0);
    assert_true(owner.offer.window_base == base);
    peer_leave(&owner);
}

/* One who has left has no claim, though it knows the token that it had. */
/* The client is too slow for its offer, which the server then takes back. */
static void an_offer_that_is_not_answered(struct daemon *daemon, unsigned char token, uint64_t base)
{
    const struct server_identity identity = {.pid = getpid(), .uid = getuid()};
    struct peer peer = {.socket = -1, .fds = {-1, -1, -1}};
    struct hello hello = peer_hello();
    union server_any message;

    memset(hello.token, token, sizeof(hello.token));
    hello.window_base = base;
    peer.socket = daemon_pass_on_with(daemon, &identity, &hello, 0, 10000);
    assert_true(peer_receive_offer(&peer));
    assert_true(peer.offer.window_base == base);
    peer_leave(&peer);
    daemon_receive(daemon, SERVER_CLIENT_GONE, &message);
}

static void a_window_that_is_offered_in_vain(void **state)
{
    struct daemon *daemon = *state;
    struct peer peer;

    assert_int_equal(claim(daemon, 7, 0, &peer), 0);
    uint64_t base = peer.offer.window_base;
    daemon_kill_server(daemon);
    peer_leave(&peer);
    daemon_start_server(daemon);
    an_offer_that_is_not_answered(daemon, 7, base);
    assert_int_equal(claim(daemon, 7, base, &peer), 0);
    assert_true(peer.offer.window_base == base);
    peer_leave(&peer);
}

static void a_window_is_given_up_for_good(void **state)
{
    struct daemon *daemon = *state;
    struct server_status_row rows[1];
    union server_any message;
    struct peer peer;

    assert_int_equal(claim(daemon, 7, 0, &peer), 0);
    uint64_t base = peer.offer.window_base;
    peer_leave(&peer);
    daemon_receive(daemon, SERVER_CLIENT_GONE, &message);
    assert_int_equal(ask_status(daemon, rows, 1), 0); /* and it has done all of it */
    daemon_kill_server(daemon);
    daemon_start_server(daemon);
    assert_int_equal(claim(daemon, 7, base, &peer), CUDA_ERROR_MPS_CONNECTION_FAILED);
    peer_leave(&peer);
}

static _Noreturn void attach_and_end(const char *path)
{
    const struct socket_message message = {.kind = SOCKET_BLOB, .id = 5, .value = 1};
    int socket = -1;
    struct peer peer;

    if (sock_connect(path, &socket) || !peer_adopt(&peer, socket) ||
        sock_send(socket, &message, sizeof(message), &socket, 1))
        _exit(1);
    _exit(0);
}

/* It has sent its own end of the connection to the server, so that stays open. */
static void a_process_that_ends_and_stays_connected(void **state)
{
    const struct hello hello = peer_hello();
    struct daemon *daemon = *state;
    char path[80];
    struct server_identity identity = {.uid = getuid()};
    union server_any message;
    int listener = -1, socket = -1, status;

    snprintf(path, sizeof(path), "%s.socket", daemon->log);
    assert_int_equal(sock_listen(path, 0600, &listener), 0);
    identity.pid = fork();
    if (identity.pid == 0)
        attach_and_end(path);
    while (sock_accept(listener, &socket))
        usleep(1000);
    daemon_pass_socket(daemon, &identity, &hello, 0, 10000, socket);
    close(socket);
    daemon_receive(daemon, SERVER_CLIENT_ATTACHED, &message);
    daemon_receive(daemon, SERVER_CLIENT_GONE, &message);
    assert_int_equal(message.client_gone.id, daemon->clients);
    assert_int_equal(waitpid(identity.pid, &status, 0), identity.pid);
    assert_int_equal(status, 0);
    close(listener);
    unlink(path);
}

static void malformed_orders_are_ignored(void **state)
{
    struct daemon *daemon = *state;
    struct server_status_row rows[1];
    struct server_status status;

    server_message_init(&status, SERVER_STATUS, 1);
    status.header.size++;
    assert_int_equal(sock_send(daemon->control, &status, sizeof(status), NULL, 0), 0);
    server_message_init(&status, SERVER_STATUS, 1);
    assert_int_equal(sock_send(daemon->control, &status, 3, NULL, 0), 0);
    status.header.kind = 63;
    assert_int_equal(sock_send(daemon->control, &status, sizeof(status), NULL, 0), 0);
    assert_int_equal(ask_status(daemon, rows, 1), 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, daemon_setup, daemon_teardown)
    const struct CMUnitTest tests[] = {
        CASE(status_has_a_row_for_each_client),
        CASE(terminated_client_stays_until_it_leaves),
        CASE(memory_limit_can_change),
        CASE(share_shows_in_the_device_table),
        CASE(another_build_is_refused),
        CASE(leaves_after_its_last_client),
        CASE(leaves_at_once_when_told_so),
        CASE(outlives_its_daemon_for_its_clients),
        CASE(a_user_has_so_many_slots),
        CASE(a_window_goes_back_to_its_client_alone),
        CASE(a_window_is_given_up_for_good),
        CASE(a_window_that_is_offered_in_vain),
        CASE(malformed_orders_are_ignored),
        CASE(tells_its_daemon_of_a_fault_first),
        CASE(a_process_that_ends_and_stays_connected),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
