/* SPDX-License-Identifier: Apache-2.0 */
/* See daemon_loop.h. */
#include "daemon_loop.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "accept_shortage.h"
#include "command_protocol.h"
#include "console.h"
#include "daemon_quit.h"
#include "default_limits.h"
#include "departed.h"
#include "descriptor_limit.h"
#include "fault_drain.h"
#include "fd.h"
#include "feature.h"
#include "http_pages.h"
#include "inherited.h"
#include "journal.h"
#include "notify.h"
#include "pending_client.h"
#include "pending_program.h"
#include "reload.h"
#include "server_process.h"
#include "service.h"
#include "settings.h"
#include "takeover.h"
#include "text.h"
#include "usage_journal.h"

#define LOG_CHECK_S 2
#define DESCRIPTORS_PLENTY 1024u

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
}

static void on_child(evutil_socket_t signal, short what, void *context)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (!server_process_reap(context, pid, status))
            reload_child_ended(context, pid, status);
}

static int watch_signals(struct daemon *daemon)
{
    static const struct {
        int signal;
        event_callback_fn handler;
    } watched[] = {
        {SIGTERM, on_terminate}, {SIGINT, on_terminate}, {SIGHUP, on_hangup}, {SIGCHLD, on_child}};

    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file at its limit is a full disk: usage_journal.c */
    for (size_t i = 0; i < sizeof(watched) / sizeof(*watched); i++) {
        daemon->signals[i] =
            evsignal_new(daemon->base, watched[i].signal, watched[i].handler, daemon);
        if (!daemon->signals[i] || event_add(daemon->signals[i], NULL))
            return -ENOMEM;
    }
    return 0;
}

/* ---- what the subsystems tell each other ---- */

static const struct daemon_events events = {
    .connection = pending_client_accept,
    .namespace_closed = pending_client_close_namespace,
    .server_ready = pending_programs_server_ready,
    .server_failed = pending_programs_refuse,
    .server_gone = pending_programs_server_gone,
    .server_reaped = daemon_quit_server_reaped,
    .reload = reload_begin,
};

/* ---- the loop ---- */

static void on_connection(evutil_socket_t fd, short what, void *context)
{
    pending_client_accept(context, fd, NULL);
}

static void on_log_check(evutil_socket_t fd, short what, void *context)
{
    struct daemon *daemon = context;

    if (journal_put_aside(daemon->paths.log, NULL, daemon->quotas.value[QUOTA_LOG_FILE]) &&
        journal_open(daemon->paths.log, daemon->foreground))
        journal("Cannot open a new control.log; going on with the old one");
    usage_journal_write_rest(daemon);
}

static int watch_logs(struct daemon *daemon)
{
    const struct timeval often = {.tv_sec = LOG_CHECK_S};

    daemon->log_check = event_new(daemon->base, -1, EV_PERSIST, on_log_check, daemon);
    return daemon->log_check ? event_add(daemon->log_check, &often) : -1;
}

static int prepare_loop(struct daemon *daemon)
{
    daemon->base = event_base_new();
    if (!daemon->base || watch_signals(daemon))
        return -ENOMEM;
    daemon->events = &events;
    journal_set_quota(daemon->quotas.value[QUOTA_CONTROL_LOG]);
    evutil_make_socket_nonblocking(daemon->instance.listen_fd);
    daemon->acceptor = event_new(daemon->base, daemon->instance.listen_fd, EV_READ | EV_PERSIST,
                                 on_connection, daemon);
    daemon->accept_pause = evtimer_new(daemon->base, pending_client_end_pause, daemon);
    daemon->quit_timeout = evtimer_new(daemon->base, daemon_quit_on_timeout, daemon);
    if (!daemon->acceptor || !daemon->accept_pause || !daemon->quit_timeout || watch_logs(daemon))
        return -ENOMEM;
    accept_shortage_init(daemon);
    return services_listen(daemon, true);
}

static void dismantle_loop(struct daemon *daemon)
{
    accept_shortage_fini(daemon);
    struct event *all[] = {daemon->acceptor,   daemon->accept_pause, daemon->quit_timeout,
                           daemon->signals[0], daemon->signals[1],   daemon->signals[2],
                           daemon->signals[3], daemon->log_check};

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (all[i])
            event_free(all[i]);
    event_base_free(daemon->base);
}

static void report_unknown_features(void)
{
    char message[512];

    if (feature_complaint(message, sizeof(message)))
        journal("%s", message);
}

static void announce(struct daemon *daemon)
{
    journal("Start");
    report_unknown_features();
    journal("Starting control daemon using socket %s", daemon->paths.socket);
    journal("To connect CUDA applications to this daemon, set env CUDA_MPS_PIPE_DIRECTORY=%s",
            daemon->paths.pipe);
    journal("CUDA MPS Control binary version: %d", MPS_BINARY_VERSION);
    journal("Funnel %s, servers use the device: %s", FUNNEL_VERSION, daemon->device);
    if (descriptor_limit() < DESCRIPTORS_PLENTY)
        journal("The limit of open files is %llu: a program takes four of its server's, and "
                "two for each larger allocation. If that is too low, %s",
                (unsigned long long)descriptor_limit(), DESCRIPTORS_REMEDY);
}

static void tell_ready(int ready_fd)
{
    notify("READY=1");
    if (ready_fd >= 0 && write(ready_fd, "", 1) != 1)
        journal("The process that started the daemon is gone");
}

/* The log may be on the disk that is full, so the process that starts the daemon is told, too. */
static int fail_because(struct daemon *daemon, int ready_fd, const char *reason)
{
    journal("%s", reason);
    if (ready_fd >= 0 && write_all(ready_fd, reason, strlen(reason)))
        journal("The process that started the daemon is gone");
    services_close(daemon);
    instance_close(&daemon->instance);
    return 1;
}

static int fail_start(struct daemon *daemon, int ready_fd, const char *what, int error)
{
    char reason[INSTANCE_REASON_MAX];

    text_format(reason, sizeof(reason), "%s (%s): %s", what, daemon->paths.pipe, strerror(-error));
    return fail_because(daemon, ready_fd, reason);
}

static int fail_metrics(struct daemon *daemon, int ready_fd, int error)
{
    char reason[INSTANCE_REASON_MAX];

    if (error == -EINVAL)
        text_format(
            reason, sizeof(reason),
            "--metrics takes ADDRESS:PORT, a PORT of 127.0.0.1 or the path of a Unix socket, "
            "not %.200s",
            daemon->metrics_address);
    else
        text_format(reason, sizeof(reason), "Metrics cannot be served at %.200s: %s",
                    daemon->metrics_address, strerror(-error));
    return fail_because(daemon, ready_fd, reason);
}

int daemon_run(struct daemon *daemon, int ready_fd)
{
    int error;

    daemon->since = time(NULL);
    limits_init_from_environment(&daemon->defaults);
    error = prepare_loop(daemon);
    if (error)
        return fail_start(daemon, ready_fd, "The event loop cannot be set up", error);
    error = inherited_exists() ? 0 : instance_write_pid(&daemon->instance);
    if (error)
        return fail_start(daemon, ready_fd,
                          "Cannot write " INSTANCE_PID_NAME " in the pipe directory", error);
    if (daemon->metrics_address) {
        error = http_pages_start(daemon, daemon->metrics_address);
        if (error)
            return fail_metrics(daemon, ready_fd, error);
    }
    announce(daemon);
    settings_restore(daemon);
    takeover_begin(daemon);
    reload_finish(daemon);
    tell_ready(ready_fd);
    event_base_dispatch(daemon->base);
    http_pages_stop();
    daemon_quit_finish(daemon);
    pending_client_close_all(daemon);
    fault_drain_close(daemon);
    console_close_all(daemon);
    departed_fini(daemon);
    usage_journal_close(daemon);
    dismantle_loop(daemon);
    return daemon->forced;
}
