/* SPDX-License-Identifier: Apache-2.0 */
/* See played_daemon.h. */
#include "played_daemon.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "claims.h"
#include "fd.h"
#include "shm.h"
#include "sock.h"
#include "unit.h"

static void run_server(const struct daemon *daemon, int control, int log)
{
    const char *program = getenv("FUNNEL_TEST_SERVER");
    int high_control = fcntl(control, F_DUPFD, 10), high_log = fcntl(log, F_DUPFD, 10);
    int high_claims = fcntl(daemon->claims, F_DUPFD, 10);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(high_control, SERVER_CONTROL_FD);
    dup2(high_log, SERVER_LOG_FD);
    dup2(high_claims, SERVER_CLAIMS_FD);
    setenv("FUNNEL_SOFT_DEVICES", "1:sms=8,mem=1G", 0);
    execl(program, program, "--device", "soft", (char *)NULL);
    _exit(127);
}

static bool comes_at_any_time(unsigned kind)
{
    return kind == SERVER_HEARTBEAT || kind == SERVER_CLIENT_USAGE;
}

void daemon_receive(struct daemon *daemon, unsigned kind, union server_any *ret_message)
{
    do {
        size_t fds = 0;
        ssize_t size = sock_recv(daemon->control, ret_message, sizeof(*ret_message), NULL, 0, &fds,
                                 TIMEOUT_MS);

        assert_true(size > 0);
        assert_true(server_message_valid(ret_message, (size_t)size));
    } while (ret_message->header.kind != kind && comes_at_any_time(ret_message->header.kind));
    assert_int_equal(ret_message->header.kind, kind);
}

void daemon_say(struct daemon *daemon, const void *message, const int *fd)
{
    const struct server_header *header = message;

    assert_int_equal(sock_send(daemon->control, message, header->size, fd, fd ? 1 : 0), 0);
}

void daemon_start_server(struct daemon *daemon)
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
    daemon_receive(daemon, SERVER_READY, &message);
    assert_int_equal(message.ready.driver, SERVER_DRIVER_SOFT);
    assert_true(message.ready.device_count > 0);
    assert_true(message.ready.max_clients > 1);
}

int daemon_setup(void **state)
{
    static struct daemon daemon;

    signal(SIGPIPE, SIG_IGN);
    strcpy(daemon.log, "/tmp/funnel-daemon-XXXXXX");
    close(mkstemp(daemon.log));
    assert_int_equal(shm_create("claims", sizeof(struct claims), &daemon.claims), 0);
    daemon_start_server(&daemon);
    *state = &daemon;
    return 0;
}

void daemon_kill_server(struct daemon *daemon)
{
    kill(daemon->pid, SIGKILL);
    waitpid(daemon->pid, NULL, 0);
    fd_close(&daemon->control);
}

int daemon_teardown(void **state)
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

void daemon_pass_socket(struct daemon *daemon, const struct server_identity *identity,
                        const struct hello *hello, uint64_t limit, uint32_t share, int socket)
{
    struct server_client client;

    server_message_init(&client, SERVER_CLIENT, 0);
    client.id = ++daemon->clients;
    client.identity = *identity;
    client.limits.sm_centipercent = share;
    client.limits.memory_limit[0] = limit;
    client.limits.class = daemon->class;
    client.hello = *hello;
    daemon_say(daemon, &client, &socket);
}

int daemon_pass_on_with(struct daemon *daemon, const struct server_identity *identity,
                        const struct hello *hello, uint64_t limit, uint32_t share)
{
    int pair[2];

    assert_int_equal(sock_pair(pair), 0);
    daemon_pass_socket(daemon, identity, hello, limit, share, pair[1]);
    close(pair[1]);
    return pair[0];
}

int daemon_pass_on(struct daemon *daemon, const struct server_identity *identity, uint64_t limit,
                   uint32_t share)
{
    const struct hello hello = peer_hello();

    return daemon_pass_on_with(daemon, identity, &hello, limit, share);
}

void daemon_bring_client(struct daemon *daemon, struct peer *peer, int32_t pid, uint64_t limit,
                         uint32_t share)
{
    const struct server_identity identity = {.pid = pid, .uid = getuid()};
    union server_any message;

    assert_true(peer_adopt(peer, daemon_pass_on(daemon, &identity, limit, share)));
    daemon_receive(daemon, SERVER_CLIENT_ATTACHED, &message);
    assert_int_equal(message.client_attached.id, daemon->clients);
}
