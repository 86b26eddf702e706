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
#include "server_protocol.h"
#include "shm.h"
#include "sock.h"
#include "unit.h"
#include "witness.h"

#define MIB (1ull << 20)

struct daemon {
    int control;
    pid_t pid;
    char log[64];
    int claims;
    uint32_t clients; /* the number of the last */
};

static void run_server(const struct daemon *daemon, int control, int log)
{
    const char *program = getenv("FUNNEL_TEST_SERVER");
    int high_control = fcntl(control, F_DUPFD, 10), high_log = fcntl(log, F_DUPFD, 10);
    int high_claims = fcntl(daemon->claims, F_DUPFD, 10);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(high_control, SERVER_CONTROL_FD);
    dup2(high_log, SERVER_LOG_FD);
    dup2(high_claims, SERVER_CLAIMS_FD);
    setenv("FUNNEL_SOFT_DEVICES", "1:sms=8,mem=1G", 1);
    execl(program, program, "--device", "soft", (char *)NULL);
    _exit(127);
}

/* Heartbeats come between all other messages. */
static void receive(struct daemon *daemon, unsigned kind, union server_any *ret_message)
{
    do {
        size_t fds = 0;
        ssize_t size = sock_recv(daemon->control, ret_message, sizeof(*ret_message), NULL, 0, &fds,
                                 TIMEOUT_MS);

        assert_true(size > 0);
        assert_true(server_message_valid(ret_message, (size_t)size));
    } while (ret_message->header.kind == SERVER_HEARTBEAT && kind != SERVER_HEARTBEAT);
    assert_int_equal(ret_message->header.kind, kind);
}

static void say(struct daemon *daemon, const void *message, const int *fd)
{
    const struct server_header *header = message;

    assert_int_equal(sock_send(daemon->control, message, header->size, fd, fd ? 1 : 0), 0);
}

static void start_server(struct daemon *daemon)
{
    union server_any message;
    int pair[2];
    int log = open(daemon->log, O_WRONLY | O_APPEND | O_CLOEXEC);

    assert_int_equal(sock_pair(pair), 0);
    daemon->pid = fork();
    if (daemon->pid == 0)
        run_server(daemon, pair[1], log);
    close(pair[1]);
    close(log);
    daemon->control = pair[0];
    receive(daemon, SERVER_READY, &message);
    assert_int_equal(message.ready.driver, SERVER_DRIVER_SOFT);
    assert_int_equal(message.ready.device_count, 1);
    assert_true(message.ready.max_clients > 1);
}

static int setup(void **state)
{
    static struct daemon daemon;

    signal(SIGPIPE, SIG_IGN);
    strcpy(daemon.log, "/tmp/funnel-daemon-XXXXXX");
    close(mkstemp(daemon.log));
    assert_int_equal(shm_create("claims", sizeof(struct claims), &daemon.claims), 0);
    start_server(&daemon);
    *state = &daemon;
    return 0;
}

static void kill_server(struct daemon *daemon)
{
    kill(daemon->pid, SIGKILL);
    waitpid(daemon->pid, NULL, 0);
    fd_close(&daemon->control);
}

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

static int teardown(void **state)
{
    struct daemon *daemon = *state;

    fd_close(&daemon->control);
    if (daemon->pid > 0) {
        kill(daemon->pid, SIGKILL);
        waitpid(daemon->pid, NULL, 0);
    }
    fd_close(&daemon->claims);
    unlink(daemon->log);
    return 0;
}

/* Passes a client on, as funneld does: its end of the socket. */
static int pass_on_with(struct daemon *daemon, const struct server_identity *identity,
                        const struct hello *hello, uint64_t limit, uint32_t share)
{
    struct server_client client;
    int pair[2];

    assert_int_equal(sock_pair(pair), 0);
    server_message_init(&client, SERVER_CLIENT, 0);
    client.id = ++daemon->clients;
    client.identity = *identity;
    client.limits.sm_centipercent = share;
    client.limits.memory_limit[0] = limit;
    client.hello = *hello;
    say(daemon, &client, &pair[1]);
    close(pair[1]);
    return pair[0];
}

static int pass_on(struct daemon *daemon, const struct server_identity *identity, uint64_t limit,
                   uint32_t share)
{
    const struct hello hello = peer_hello();

    return pass_on_with(daemon, identity, &hello, limit, share);
}

/* The same, and lets it attach. */
static void bring_client(struct daemon *daemon, struct peer *peer, int32_t pid, uint64_t limit,
                         uint32_t share)
{
    const struct server_identity identity = {.pid = pid, .uid = getuid()};
    union server_any message;

    assert_true(peer_adopt(peer, pass_on(daemon, &identity, limit, share)));
    receive(daemon, SERVER_CLIENT_ATTACHED, &message);
    assert_int_equal(message.client_attached.id, daemon->clients);
}

static unsigned ask_status(struct daemon *daemon, struct server_status_row *ret_rows,
                           unsigned capacity)
{
    struct server_status status;
    union server_any message;
    unsigned rows = 0;
    size_t fds = 0;

    server_message_init(&status, SERVER_STATUS, 77);
    say(daemon, &status, NULL);
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
    bring_client(*state, &a, 1001, 0, 10000);
    bring_client(*state, &b, 1002, 64 * MIB, 10000);
    assert_int_equal(peer_make_granule(&b, 4 * MIB, &address), CUDA_SUCCESS);
    assert_int_equal(ask_status(*state, rows, 4), 2);
    assert_int_equal(rows[0].id, 1);
    assert_int_equal(rows[1].id, 2);
    assert_int_equal(rows[1].state, SERVER_CLIENT_ACTIVE);
    assert_int_equal(rows[1].memory_used[0], 4 * MIB);
    assert_int_equal(rows[1].limits.memory_limit[0], 64 * MIB);
    peer_leave(&a);
    receive(*state, SERVER_CLIENT_GONE, &message);
    assert_int_equal(message.client_gone.id, 1);
    assert_int_equal(message.client_gone.status, 0);
    assert_int_equal(ask_status(*state, rows, 4), 1);
    peer_leave(&b);
}

static CUresult order(struct daemon *daemon, const void *message)
{
    union server_any answer;

    say(daemon, message, NULL);
    receive(daemon, SERVER_RESULT, &answer);
    assert_int_equal(answer.header.request, ((const struct server_header *)message)->request);
    return (CUresult)answer.result.status;
}

static void terminated_client_stays_until_it_leaves(void **state)
{
    struct server_terminate_client terminate;
    struct server_status_row rows[4];
    union server_any message;
    struct peer peer;

    bring_client(*state, &peer, 1001, 0, 10000);
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
    receive(*state, SERVER_CLIENT_GONE, &message);
    assert_int_equal(message.client_gone.status, CUDA_ERROR_MPS_CLIENT_TERMINATED);
}

static void memory_limit_can_change(void **state)
{
    struct server_set_limits limits;
    struct peer peer;
    uint64_t address;

    bring_client(*state, &peer, 1001, 4 * MIB, 10000);
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

    bring_client(*state, &whole, 1001, 0, 10000);
    assert_int_equal(pread_all(whole.fds[ATTACH_FD_DEVICES], &record, sizeof(record), 0), 0);
    int all = record.attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT];
    bring_client(*state, &half, 1002, 0, 5000);
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
    say(daemon, &client, &pair[1]);
    close(pair[1]);
    assert_false(peer_adopt(&peer, pair[0]));
    assert_int_equal(peer.offer.welcome.status, CUDA_ERROR_MPS_CONNECTION_FAILED);
    receive(daemon, SERVER_CLIENT_GONE, &message);
    assert_int_equal(message.client_gone.id, 7);
    peer_leave(&peer);
}

static void leaves_after_its_last_client(void **state)
{
    struct daemon *daemon = *state;
    struct server_shutdown shutdown;
    struct peer peer;

    bring_client(daemon, &peer, 1001, 0, 10000);
    server_message_init(&shutdown, SERVER_SHUTDOWN, 0);
    say(daemon, &shutdown, NULL);
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

    bring_client(daemon, &peer, 1001, 0, 10000);
    server_message_init(&shutdown, SERVER_SHUTDOWN, 0);
    shutdown.force = 1;
    say(daemon, &shutdown, NULL);
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

    bring_client(daemon, &peer, 1001, 0, 10000);
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

    bring_client(daemon, &peer, 1001, 0, 10000);
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

    if (peer_adopt(peer, pass_on(daemon, &identity, 0, 10000))) {
        receive(daemon, SERVER_CLIENT_ATTACHED, &message);
        return CUDA_SUCCESS;
    }
    receive(daemon, SERVER_CLIENT_GONE, &message);
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
    say(*state, &order_of_daemon, NULL);
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
    bool attached = peer_adopt(ret_peer, pass_on_with(daemon, &identity, &hello, 0, 10000));
    receive(daemon, attached ? SERVER_CLIENT_ATTACHED : SERVER_CLIENT_GONE, &message);
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
    kill_server(daemon);
    peer_leave(&owner);
    peer_leave(&thief);
    start_server(daemon);
    assert_int_equal(claim(daemon, 8, base, &thief), CUDA_ERROR_MPS_CONNECTION_FAILED);
    peer_leave(&thief);
    assert_int_equal(claim(daemon, 0, base, &nobody), CUDA_ERROR_MPS_CONNECTION_FAILED);
    peer_leave(&nobody);
    assert_int_equal(claim(daemon, 7, base, &owner), 0);
    assert_true(owner.offer.window_base == base);
    peer_leave(&owner);
}

/* One who has left has no claim, though it knows the token that it had. */
static void a_window_is_given_up_for_good(void **state)
{
    struct daemon *daemon = *state;
    struct server_status_row rows[1];
    union server_any message;
    struct peer peer;

    assert_int_equal(claim(daemon, 7, 0, &peer), 0);
    uint64_t base = peer.offer.window_base;
    peer_leave(&peer);
    receive(daemon, SERVER_CLIENT_GONE, &message);
    assert_int_equal(ask_status(daemon, rows, 1), 0); /* and it has done all of it */
    kill_server(daemon);
    start_server(daemon);
    assert_int_equal(claim(daemon, 7, base, &peer), CUDA_ERROR_MPS_CONNECTION_FAILED);
    peer_leave(&peer);
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
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(status_has_a_row_for_each_client),  CASE(terminated_client_stays_until_it_leaves),
        CASE(memory_limit_can_change),           CASE(share_shows_in_the_device_table),
        CASE(another_build_is_refused),          CASE(leaves_after_its_last_client),
        CASE(leaves_at_once_when_told_so),       CASE(outlives_its_daemon_for_its_clients),
        CASE(a_user_has_so_many_slots),          CASE(a_window_goes_back_to_its_client_alone),
        CASE(a_window_is_given_up_for_good),     CASE(malformed_orders_are_ignored),
        CASE(tells_its_daemon_of_a_fault_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
