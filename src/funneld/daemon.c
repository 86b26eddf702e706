/* SPDX-License-Identifier: Apache-2.0 */
/* See daemon.h: the loop, its signals, and how it ends. */
#include "daemon.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "aftermath.h"
#include "command_protocol.h"
#include "console.h"
#include "fd.h"
#include "funneld_server.h"
#include "journal.h"
#include "newcomer.h"
#include "notify.h"
#include "service.h"

/* ---- the end ---- */

/* The next daemon may start before this one's front end hears that it is over. */
static void leave(struct daemon *daemon)
{
    struct console *quitter = daemon->quitter;

    notify("STOPPING=1");
    journal("Exit");
    services_close(daemon);
    instance_close(&daemon->instance);
    if (quitter)
        console_done(quitter, daemon->forced);
    event_base_loopbreak(daemon->base);
}

void daemon_server_gone(struct daemon *daemon)
{
    if (daemon->quitting && list_empty(&daemon->servers))
        leave(daemon);
}

static void on_impatience(evutil_socket_t fd, short what, void *context)
{
    struct daemon *daemon = context;

    daemon->forced |= !list_empty(&daemon->servers);
    list_for_each(struct server, server, &daemon->servers, link) server_stop(server, true);
}

static void set_patience(struct daemon *daemon, int seconds)
{
    struct timeval patience = {.tv_sec = seconds};

    if (seconds >= 0)
        evtimer_add(daemon->patience, &patience);
}

void daemon_quit(struct daemon *daemon, int patience_s, struct console *quitter)
{
    if (quitter && daemon->quitter && daemon->quitter != quitter) {
        console_print(quitter, "The daemon is quitting already");
        console_done(quitter, 1);
    } else if (quitter) {
        daemon->quitter = quitter;
    }
    set_patience(daemon, patience_s);
    if (daemon->quitting)
        return;
    daemon->quitting = true;
    daemon_listen(daemon, false);
    list_for_each(struct server, server, &daemon->servers, link) server_stop(server, false);
    daemon_server_gone(daemon);
}

/* ---- signals ---- */

static void on_terminate(evutil_socket_t signal, short what, void *context)
{
    struct daemon *daemon = context;

    journal("Received %s", strsignal((int)signal));
    daemon_quit(daemon, 0, NULL);
}

static void on_hangup(evutil_socket_t signal, short what, void *context)
{
    struct daemon *daemon = context;

    if (journal_open(daemon->paths.log, daemon->foreground))
        journal("Cannot open a new control.log; going on with the old one");
    server_reopen_logs(daemon);
}

static void on_child(evutil_socket_t signal, short what, void *context)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        server_reap(context, pid, status);
}

static int watch_signals(struct daemon *daemon)
{
    static const struct {
        int signal;
        event_callback_fn handler;
    } watched[] = {
        {SIGTERM, on_terminate}, {SIGINT, on_terminate}, {SIGHUP, on_hangup}, {SIGCHLD, on_child}};

    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < sizeof(watched) / sizeof(*watched); i++) {
        daemon->signals[i] =
            evsignal_new(daemon->base, watched[i].signal, watched[i].handler, daemon);
        if (!daemon->signals[i] || event_add(daemon->signals[i], NULL))
            return -ENOMEM;
    }
    return 0;
}

/* ---- the loop ---- */

static void on_caller(evutil_socket_t fd, short what, void *context)
{
    newcomer_accept(context, fd, NULL);
}

int daemon_listen(struct daemon *daemon, bool on)
{
    int error = on ? event_add(daemon->acceptor, NULL) : event_del(daemon->acceptor);

    return services_listen(daemon, on) || error ? -ENOMEM : 0;
}

static void on_pause_over(evutil_socket_t fd, short what, void *context)
{
    struct daemon *daemon = context;

    if (!daemon->quitting)
        daemon_listen(daemon, true);
}

static int prepare_loop(struct daemon *daemon)
{
    daemon->base = event_base_new();
    if (!daemon->base || watch_signals(daemon))
        return -ENOMEM;
    evutil_make_socket_nonblocking(daemon->instance.listen_fd);
    daemon->acceptor = event_new(daemon->base, daemon->instance.listen_fd, EV_READ | EV_PERSIST,
                                 on_caller, daemon);
    daemon->accept_pause = evtimer_new(daemon->base, on_pause_over, daemon);
    daemon->patience = evtimer_new(daemon->base, on_impatience, daemon);
    if (!daemon->acceptor || !daemon->accept_pause || !daemon->patience)
        return -ENOMEM;
    return daemon_listen(daemon, true);
}

static void dismantle_loop(struct daemon *daemon)
{
    struct event *events[] = {daemon->acceptor,   daemon->accept_pause, daemon->patience,
                              daemon->signals[0], daemon->signals[1],   daemon->signals[2],
                              daemon->signals[3]};

    for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++)
        if (events[i])
            event_free(events[i]);
    if (daemon->base)
        event_base_free(daemon->base);
}

static void announce(struct daemon *daemon, int ready_fd)
{
    journal("Start");
    journal("Starting control daemon using socket %s", daemon->paths.socket);
    journal("To connect CUDA applications to this daemon, set env CUDA_MPS_PIPE_DIRECTORY=%s",
            daemon->paths.pipe);
    journal("CUDA MPS Control binary version: %d", MPS_BINARY_VERSION);
    journal("Funnel %s, servers use the device: %s", FUNNEL_VERSION, daemon->device);
    notify("READY=1");
    if (ready_fd >= 0 && write(ready_fd, "", 1) != 1)
        journal("Whoever started the daemon is gone");
}

void daemon_init(struct daemon *daemon)
{
    list_init(&daemon->services);
    list_init(&daemon->servers);
    list_init(&daemon->newcomers);
    list_init(&daemon->survivors);
    list_init(&daemon->consoles);
    daemon->uid = geteuid();
}

int daemon_run(struct daemon *daemon, int ready_fd)
{
    daemon->since = time(NULL);
    limits_init_from_environment(&daemon->defaults);
    if (prepare_loop(daemon) || instance_write_pid(&daemon->instance)) {
        journal("Cannot set up the daemon: %s", strerror(errno));
        services_close(daemon);
        instance_close(&daemon->instance);
        return 1;
    }
    announce(daemon, ready_fd);
    event_base_dispatch(daemon->base);
    newcomer_close_all(daemon);
    aftermath_close(daemon);
    console_close_all(daemon);
    dismantle_loop(daemon);
    return daemon->forced;
}
