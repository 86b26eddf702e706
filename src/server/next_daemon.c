/* SPDX-License-Identifier: Apache-2.0 */
/* See next_daemon.h. */
#include "next_daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "accept_reserve.h"
#include "clock.h"
#include "daemon_link.h"
#include "fd.h"
#include "log.h"
#include "server_life.h"
#include "sock.h"
#include "text.h"

/* How long a server without clients waits. Its context takes memory of the device. */
#define WAIT_DEFAULT_S 60u

struct next_daemon {
    uid_t daemon_uid;
    struct watch *connection;
    int reserve; /* for the connection of a daemon: accept_reserve.h */
    int timer_fd;
    struct watch *timer;
    uint64_t wait_ns;
    uint64_t idle_since; /* clock_ns(); 0 = the server has clients, or a daemon */
};

static struct next_daemon next = {.reserve = -1, .timer_fd = -1};

static bool is_listening(int fd)
{
    int listens = 0;
    socklen_t size = sizeof(listens);

    return !getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) && listens;
}

static uint64_t wait_from_environment(void)
{
    const char *text = getenv("FUNNEL_DAEMON_WAIT");
    uint64_t seconds;

    return (text && !text_to_u64(text, &seconds) && seconds <= UINT32_MAX ? seconds
                                                                          : WAIT_DEFAULT_S) *
           NS_PER_SEC;
}

static void set_timer(int seconds)
{
    const struct itimerspec period = {.it_interval.tv_sec = seconds, .it_value.tv_sec = seconds};

    timerfd_settime(next.timer_fd, 0, &period, NULL);
}

/* ---- the next one ---- */

static int check_user(int fd)
{
    pid_t pid;
    uid_t uid;
    gid_t gid;
    int error = sock_peer(fd, &pid, &uid, &gid);

    if (!error && uid != next.daemon_uid) {
        log_line("Process %d of user %u has connected as a daemon, and is none of user %u",
                 (int)pid, (unsigned)uid, (unsigned)next.daemon_uid);
        error = -EPERM;
    }
    return error;
}

/* Threads that send just now must not meet a descriptor of anything else, so the number stays. */
static void listen_to(struct server *server, int fd)
{
    /* What the dead daemon has sent is still there. */
    daemon_link_drain(server);
    if (!server->life->alone)
        log_line("A second daemon has connected, and is not listened to");
    else if (dup3(fd, server->life->control_fd, O_CLOEXEC) < 0 || daemon_link_start(server))
        log_line("The next daemon cannot be listened to: %s", strerror(errno));
    else {
        server->life->alone = false;
        log_line("Another daemon has connected");
    }
}

/* Whether there was a connection. */
static bool accept_next(struct server *server)
{
    _cleanup_fd_ int fd = -1;
    int error = sock_accept(SERVER_RETURN_FD, &fd);

    if (accept_is_short(error))
        error = accept_by_reserve(&next.reserve, SERVER_RETURN_FD, &fd);
    if (!error && !check_user(fd))
        listen_to(server, fd);
    if (next.reserve < 0)
        set_timer(1);
    return !error;
}

/* The socket tells of each connection once, so that one which nothing can accept does not keep the
 * thread busy. It is tried again each second. */
static void on_connection(void *context, int listen_fd)
{
    (void)listen_fd;
    while (accept_next(context))
        ;
}

/* ---- without a daemon ---- */

static void end_if_forgotten(struct server *server)
{
    uint64_t now = clock_ns();

    if (!list_empty(&server->sessions))
        next.idle_since = 0;
    else if (!next.idle_since)
        next.idle_since = now;
    if (next.idle_since && now - next.idle_since >= next.wait_ns) {
        log_line("No other daemon has come");
        server_leave(server, false);
    }
}

/* The first messages of a daemon bring a descriptor, so the reserve is left to them for a while. */
static void on_second(void *context, int timer_fd)
{
    struct server *server = context;
    uint64_t count;

    if (read(timer_fd, &count, sizeof(count)) != (ssize_t)sizeof(count))
        return;
    on_connection(server, SERVER_RETURN_FD);
    if (next.reserve < 0)
        next.reserve = accept_reserve_open();
    if (server->life->alone)
        end_if_forgotten(server);
    else if (next.reserve >= 0)
        set_timer(0);
}

void next_daemon_await(struct server *server)
{
    server->life->alone = true;
    if (!next.connection) {
        server_leave(server, false);
        return;
    }
    log_line("The server waits for the next daemon, and ends %llu s after its last client if none "
             "comes",
             (unsigned long long)(next.wait_ns / NS_PER_SEC));
    next.idle_since = 0;
    set_timer(1);
}

int next_daemon_watch(struct server *server, uid_t daemon_uid)
{
    if (!is_listening(SERVER_RETURN_FD))
        return 0;
    next.daemon_uid = daemon_uid;
    next.wait_ns = wait_from_environment();
    next.timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (next.timer_fd < 0 || fcntl(SERVER_RETURN_FD, F_SETFL, O_NONBLOCK))
        return -errno;
    fd_set_cloexec(SERVER_RETURN_FD);
    next.timer = loop_watch_readable(server->life->loop, next.timer_fd, on_second, server);
    next.connection =
        loop_watch_changes(server->life->loop, SERVER_RETURN_FD, on_connection, server);
    next.reserve = accept_reserve_open();
    server->life->keeps_gone = next.connection != NULL;
    return next.timer && next.connection ? 0 : -ENOMEM;
}
