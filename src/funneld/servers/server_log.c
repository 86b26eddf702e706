/* SPDX-License-Identifier: Apache-2.0 */
/* See server_log.h. */
#include "server_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "fd.h"
#include "journal.h"
#include "server_process.h"
#include "text.h"

#define TEXT_MAX (64u << 10) /* a longer line is cut into several */
#define PIPE_BYTES (256 << 10)
#define RETRY_S 2
#define MINUTE_NS (60 * NS_PER_SEC)

/* ---- the pipe ---- */

/* The bytes; 0 at the end of the pipe, or where there is no space for more; negative: none now. */
static ssize_t read_some(struct server_log *log)
{
    ssize_t got = read(log->fd, log->text + log->used, TEXT_MAX - log->used);

    log->used += got > 0 ? (size_t)got : 0;
    return got;
}

/* Whole lines, and all of it where no newline fits in any more. */
static size_t ready_bytes(const struct server_log *log)
{
    const char *newline = memrchr(log->text, '\n', log->used);

    if (newline)
        return (size_t)(newline - log->text) + 1;
    return log->used == TEXT_MAX ? TEXT_MAX : 0;
}

/* ---- the file ---- */

static uint64_t most_bytes(const struct server_process *server)
{
    return server->daemon->quotas.value[QUOTA_LOG_FILE];
}

/* 0 or -errno; then the text stays. */
static int write_text(struct server_process *server, size_t size)
{
    struct server_log *log = &server->log;
    const char *directory = server->daemon->paths.log;

    if (!size)
        return 0;
    /* A server is a process of its user, and its log is read on the terminals of others. */
    text_make_lines_printable(log->text, size);
    journal_put_aside(directory, server->service, most_bytes(server));
    int error = journal_append_server(directory, server->service, server->uid, log->text, size);
    if (error)
        return error;
    memmove(log->text, log->text + size, log->used - size);
    log->used -= size;
    log->written += size;
    return 0;
}

/* A server may write as much in a minute as its file may have. */
static bool has_written_enough(struct server_process *server)
{
    struct server_log *log = &server->log;

    if (clock_ns() - log->minute > MINUTE_NS) {
        log->minute = clock_ns();
        log->written = 0;
    }
    return log->written > most_bytes(server);
}

static void complain(struct server_process *server, int error)
{
    if (server->log.complained)
        return;
    server->log.complained = true;
    journal("The lines of server %d for the server.log of %s wait, and some may be lost: %s",
            (int)server->pid, server->name,
            error ? strerror(-error) : "it has logged more than the quota log-file in a minute");
}

static void pause_log(struct server_process *server, int error)
{
    const struct timeval pause = {.tv_sec = RETRY_S};

    complain(server, error);
    event_del(server->log.readable);
    evtimer_add(server->log.retry, &pause);
}

static void go_on(struct server_process *server)
{
    if (server->log.complained)
        journal("The server.log of %s is written again", server->name);
    server->log.complained = false;
    event_add(server->log.readable, NULL);
}

static void write_lines(struct server_process *server)
{
    int error = write_text(server, ready_bytes(&server->log));

    if (error || has_written_enough(server))
        pause_log(server, error);
    else if (!event_pending(server->log.readable, EV_READ, NULL))
        go_on(server);
}

/* ---- events ---- */

static void on_readable(evutil_socket_t fd, short what, void *context)
{
    struct server_process *server = context;

    ssize_t got = read_some(&server->log);

    if (got > 0)
        write_lines(server);
    else if (got == 0)
        event_del(server->log.readable);
}

static void on_retry(evutil_socket_t fd, short what, void *context)
{
    struct server_process *server = context;

    if (has_written_enough(server))
        pause_log(server, 0);
    else
        write_lines(server);
}

/* ---- the life of a log ---- */

/* A server without a file has a pipe that ends with the daemon. */
static int open_pipe(const struct server_process *server, int ends[2], bool is_new)
{
    if (server->file.is_open)
        return server_file_open_log(server, &ends[0], is_new ? &ends[1] : NULL);
    return pipe2(ends, O_CLOEXEC | O_NONBLOCK) ? -errno : 0;
}

int server_log_open(struct server_process *server, int *ret_fd)
{
    struct server_log *log = &server->log;
    int ends[2] = {-1, -1};
    int error = open_pipe(server, ends, ret_fd != NULL);

    if (error)
        return error;
    fcntl(ends[0], F_SETPIPE_SZ, PIPE_BYTES);
    log->fd = ends[0];
    log->text = malloc(TEXT_MAX + 1);
    log->readable =
        event_new(server->daemon->base, log->fd, EV_READ | EV_PERSIST, on_readable, server);
    log->retry = evtimer_new(server->daemon->base, on_retry, server);
    if (log->text && log->readable && log->retry && !event_add(log->readable, NULL)) {
        if (ret_fd)
            *ret_fd = ends[1];
        return 0;
    }
    fd_close(&ends[1]);
    server_log_close(server);
    return -ENOMEM;
}

/* A process that the server has left behind may still write. */
static void write_rest(struct server_process *server)
{
    struct server_log *log = &server->log;
    int error = 0;

    for (size_t rest = PIPE_BYTES; rest <= PIPE_BYTES && read_some(log) > 0; rest -= TEXT_MAX)
        error = write_text(server, ready_bytes(log));
    if (log->used && log->text[log->used - 1] != '\n')
        log->text[log->used++] = '\n';
    error = write_text(server, log->used);
    if (error)
        journal("The last %zu bytes that server %d has logged are lost: %s", log->used,
                (int)server->pid, strerror(-error));
}

void server_log_close(struct server_process *server)
{
    struct server_log *log = &server->log;

    if (log->fd < 0)
        return;
    if (log->text)
        write_rest(server);
    if (log->readable)
        event_free(log->readable);
    if (log->retry)
        event_free(log->retry);
    free(log->text);
    fd_close(&log->fd);
}
