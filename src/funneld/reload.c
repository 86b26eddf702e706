/* SPDX-License-Identifier: Apache-2.0 */
/* See reload.h. */
#include "reload.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command_protocol.h"
#include "console.h"
#include "fd.h"
#include "hello.h"
#include "http_pages.h"
#include "inherited.h"
#include "journal.h"
#include "pending_client.h"
#include "server_process.h"
#include "service.h"
#include "text.h"
#include "usage_journal.h"

#define TRIAL_SECONDS 30 /* far more than it takes to read options and a file */
#define TRIAL_TEXT_MAX 2048
#define REST_TICKS 200 /* of 10 ms: for commands and pages that are being answered */
#define ARGUMENTS_MAX 64

extern char **environ;

static struct {
    struct console *console; /* that has ordered the reload; NULL = none is under way */
    pid_t trial;             /* 0 = it has ended */
    int output_fd;           /* of the trial */
    struct event *timer;     /* of the trial, then of the rest */
    unsigned ticks;
} reload = {.output_fd = -1};

static void end_reload(void)
{
    fd_close(&reload.output_fd);
    if (reload.timer)
        event_free(reload.timer);
    reload.timer = NULL;
    reload.console = NULL;
    reload.trial = 0;
}

static void refuse_reload(struct console *console, const char *reason)
{
    console_print(console, "%s", reason);
    console_print(console, "The daemon goes on as it was");
    console_done(console, COMMAND_FAILED);
}

static void fail_reload(struct daemon *daemon, const char *reason)
{
    struct console *console = reload.console;

    end_reload();
    refuse_reload(console, reason);
}

static int start_timer(struct daemon *daemon, event_callback_fn callback, short what,
                       struct timeval period)
{
    if (reload.timer)
        event_free(reload.timer);
    reload.timer = event_new(daemon->base, -1, what, callback, daemon);
    return reload.timer && !event_add(reload.timer, &period) ? 0 : -ENOMEM;
}

/* ---- the new program ---- */

static void copy_arguments(const struct daemon *daemon, char *ret_arguments[ARGUMENTS_MAX],
                           char *last)
{
    unsigned count = 0;

    while (daemon->arguments[count] && count < ARGUMENTS_MAX - 2) {
        ret_arguments[count] = daemon->arguments[count];
        count++;
    }
    ret_arguments[count++] = last;
    ret_arguments[count] = NULL;
}

_Noreturn static void run_trial(const struct daemon *daemon, int output_fd)
{
    char *arguments[ARGUMENTS_MAX], check[] = "--check";

    copy_arguments(daemon, arguments, check);
    dup2(output_fd, STDOUT_FILENO);
    dup2(output_fd, STDERR_FILENO);
    if (!setenv(INHERITED_FORMAT_VARIABLE, INHERITED_FORMAT, 1))
        execve(daemon->program, arguments, environ);
    dprintf(STDERR_FILENO, "%s cannot be started: %s\n", daemon->program, strerror(errno));
    _exit(127);
}

static void on_trial_timeout(evutil_socket_t fd, short what, void *context)
{
    if (reload.trial)
        kill(reload.trial, SIGKILL);
}

static int start_trial(struct daemon *daemon)
{
    _cleanup_fd_ int theirs = -1;
    int ends[2];
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC))
        return -errno;
    reload.output_fd = ends[0];
    theirs = ends[1];
    fcntl(reload.output_fd, F_SETFL, O_NONBLOCK);
    pid = fork();
    if (pid == 0)
        run_trial(daemon, theirs);
    if (pid < 0)
        return -errno;
    reload.trial = pid;
    return start_timer(daemon, on_trial_timeout, 0, (struct timeval){.tv_sec = TRIAL_SECONDS});
}

void reload_begin(struct daemon *daemon, struct console *console)
{
    char reason[PATH_MAX + 128];
    int error;

    if (daemon->quitting || reload.console) {
        refuse_reload(console,
                      daemon->quitting ? "The daemon is quitting" : "Another reload is under way");
        return;
    }
    reload.console = console;
    reload.ticks = 0;
    error = start_trial(daemon);
    if (!error)
        return;
    text_format(reason, sizeof(reason), "%s cannot be started: %s", daemon->program,
                strerror(-error));
    fail_reload(daemon, reason);
}

/* ---- the rest of what is under way ---- */

static bool is_being_answered(const struct console *console)
{
    return console != reload.console && (console->busy || !list_empty(&console->connection.outbox));
}

static bool is_at_rest(const struct daemon *daemon)
{
    list_for_each (struct console, console, &daemon->consoles, link)
        if (is_being_answered(console))
            return false;
    return !http_pages_are_read();
}

/* A command that takes longer is answered by the old program. */
static void cut_commands(struct daemon *daemon)
{
    list_for_each_safe (struct console, console, &daemon->consoles, link)
        if (console != reload.console && console->busy) {
            console_print(console, "The daemon is being reloaded; give the command again");
            console_done(console, COMMAND_FAILED);
        }
}

/* ---- what is left to the new program ---- */

static int leave_sockets(const struct daemon *daemon, struct list *left)
{
    char path[PATH_MAX];
    int error = inherited_add(left, INHERITED_LOCK, daemon->instance.lock_fd, "", NULL, 0);

    if (!error)
        error = inherited_add(left, INHERITED_LISTENER, daemon->instance.listen_fd,
                              daemon->paths.socket, NULL, 0);
    if (!error && http_pages_socket() >= 0)
        error = inherited_add(left, INHERITED_METRICS, http_pages_socket(), daemon->metrics_address,
                              NULL, 0);
    list_for_each (struct service, service, &daemon->services, link)
        list_for_each (struct mps_namespace, space, &service->namespaces, link)
            if (!error && !path_join(space->directory, HELLO_SOCKET_NAME, path, sizeof(path)))
                error = inherited_add(left, INHERITED_LISTENER, space->listen_fd, path, NULL, 0);
    return error;
}

/* One that has not read all its answers would wait for the rest, so its connection ends. */
static bool is_left(const struct console *console)
{
    return !console->gone && list_empty(&console->connection.outbox);
}

static int leave_front_ends(const struct daemon *daemon, struct list *left)
{
    int error = 0;

    list_for_each (struct console, console, &daemon->consoles, link)
        if (!error && is_left(console))
            error = inherited_add(
                left, console == reload.console ? INHERITED_RELOADER : INHERITED_FRONT_END,
                console->connection.fd, "", NULL, 0);
    return error;
}

static int leave_all(const struct daemon *daemon, struct list *left)
{
    int error = leave_sockets(daemon, left);

    if (!error)
        error = leave_front_ends(daemon, left);
    if (!error)
        error = pending_clients_leave(daemon, left);
    return error ? error : inherited_leave(left);
}

static void free_left(struct list *left)
{
    list_for_each_safe (struct inherited, one, left, link)
        inherited_free(one);
}

/* ---- becoming it ---- */

/* Signals that come between the two programs wait for the new one, which takes them when it
 * listens to them. */
static void block_signals(int how)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGTERM, SIGCHLD};
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
        sigaddset(&set, signals[i]);
    sigprocmask(how, &set, NULL);
}

/* Returns only where that has failed. */
static int become(const struct daemon *daemon)
{
    struct list left;
    int error;

    list_init(&left);
    error = leave_all(daemon, &left);
    if (!error) {
        block_signals(SIG_BLOCK);
        execve(daemon->program, daemon->arguments, environ);
        error = -errno;
        block_signals(SIG_UNBLOCK);
        inherited_keep(&left);
    }
    free_left(&left);
    return error;
}

/* NULL, or what would be lost. */
static const char *find_obstacle(const struct daemon *daemon)
{
    if (daemon->quitting)
        return "The daemon is quitting";
    if (usage_journal_waits())
        return "usage.jsonl cannot be written, and lines of it wait; control.log says why";
    list_for_each (struct server_process, server, &daemon->servers, link)
        if (server->connection.queued_fds)
            return "Programs are on their way to a server that does not read; funnel status shows "
                   "which does not answer";
    return NULL;
}

static void accept_again(struct daemon *daemon)
{
    services_listen(daemon, true);
    http_pages_listen(true);
}

static void become_or_go_on(struct daemon *daemon)
{
    const char *obstacle = find_obstacle(daemon);
    char reason[PATH_MAX + 128];
    int error = 0;

    if (!obstacle) {
        journal("Reload: the daemon becomes %s", daemon->program);
        usage_journal_close(daemon);
        error = become(daemon);
        text_format(reason, sizeof(reason), "%s cannot be started: %s", daemon->program,
                    strerror(-error));
    }
    accept_again(daemon);
    fail_reload(daemon, obstacle ? obstacle : reason);
}

static void on_tick(evutil_socket_t fd, short what, void *context)
{
    struct daemon *daemon = context;

    if (!is_at_rest(daemon) && ++reload.ticks < REST_TICKS)
        return;
    cut_commands(daemon);
    become_or_go_on(daemon);
}

static void begin_rest(struct daemon *daemon)
{
    services_listen(daemon, false);
    evtimer_del(daemon->accept_pause);
    http_pages_listen(false);
    if (!start_timer(daemon, on_tick, EV_PERSIST, (struct timeval){.tv_usec = 10000}))
        return;
    accept_again(daemon);
    fail_reload(daemon, "Out of memory");
}

static void report_trial(struct daemon *daemon, int wait_status)
{
    char text[TRIAL_TEXT_MAX] = "";
    ssize_t size = read(reload.output_fd, text, sizeof(text) - 1);

    text[size > 0 ? size : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    if (!*text)
        text_format(text, sizeof(text), "%s %s", daemon->program,
                    WIFSIGNALED(wait_status) ? "was killed while it tried to start"
                                             : "does not start");
    fail_reload(daemon, text);
}

void reload_child_ended(struct daemon *daemon, pid_t pid, int wait_status)
{
    if (!reload.trial || pid != reload.trial)
        return;
    reload.trial = 0;
    if (wait_status)
        report_trial(daemon, wait_status);
    else
        begin_rest(daemon);
}

/* ---- in the new program ---- */

static struct mps_namespace *space_at(const struct daemon *daemon, const char *directory)
{
    list_for_each (struct service, service, &daemon->services, link)
        list_for_each (struct mps_namespace, space, &service->namespaces, link)
            if (!strcmp(space->directory, directory))
                return space;
    return NULL;
}

/* A program whose namespace is gone finds its connection closed, as if it came now. */
static void go_on_with_clients(struct daemon *daemon)
{
    struct inherited *one;

    while ((one = inherited_next(INHERITED_CLIENT))) {
        struct mps_namespace *space = *one->about ? space_at(daemon, one->about) : NULL;

        if (*one->about && !space)
            fd_close(&one->fd);
        else
            pending_client_inherit(daemon, one->fd, space, one->data, one->size);
        inherited_free(one);
    }
}

static void go_on_with_front_ends(struct daemon *daemon, const char *kind)
{
    struct inherited *one;

    while ((one = inherited_next(kind))) {
        struct console *console = console_inherit(daemon, one->fd);

        if (console && !strcmp(kind, INHERITED_RELOADER)) {
            console_print(console, "The daemon has been reloaded, and is Funnel %s",
                          FUNNEL_VERSION);
            console_done(console, COMMAND_OK);
        }
        inherited_free(one);
    }
}

/* Of servers and namespaces that the configuration file does not define any more. */
static void close_rest(void)
{
    struct inherited *one;

    while ((one = inherited_next(INHERITED_LISTENER))) {
        char *slash = strrchr(one->about, '/');

        unlink(one->about);
        if (slash)
            *slash = '\0';
        rmdir(one->about);
        fd_close(&one->fd);
        inherited_free(one);
    }
}

void reload_finish(struct daemon *daemon)
{
    block_signals(SIG_UNBLOCK);
    go_on_with_clients(daemon);
    go_on_with_front_ends(daemon, INHERITED_FRONT_END);
    go_on_with_front_ends(daemon, INHERITED_RELOADER);
    close_rest();
}
