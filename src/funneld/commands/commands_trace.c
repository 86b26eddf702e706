/* SPDX-License-Identifier: Apache-2.0 */
/* Tracing: the daemon makes a file for each server, and gives it to the front end. The server
 * writes to it, and the front end reads it. The trace ends with its time, or with the front end's
 * connection. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "command_protocol.h"
#include "commands.h"
#include "console.h"
#include "fd.h"
#include "server_process.h"
#include "shm.h"
#include "text.h"
#include "trace_format.h"

#define SECONDS_MAX 600u

static bool is_traced(const struct console *console, const struct server_process *server)
{
    return server->role == SERVER_SERVING && server->state == SERVER_ACTIVE && !server->stopping &&
           console_may_manage(console, server);
}

static int send_file(struct console *console, const struct server_process *server, int fd)
{
    struct command_trace message = {.header = {COMMAND_MAGIC, COMMAND_TRACE},
                                    .server_pid = server->pid};

    text_copy(message.name, sizeof(message.name), server->name);
    return connection_send(&console->connection, &message, sizeof(message), fd);
}

/* 0, or -errno. */
static int trace_server(struct console *console, struct server_process *server,
                        const struct grammar_values *values)
{
    _cleanup_fd_ int fd = -1;
    struct server_trace order;
    int error = shm_create("funnel-trace", TRACE_FILE_SIZE, &fd), other;

    if (error)
        return error;
    other = dup(fd);
    if (other < 0)
        return -EMFILE;
    server_message_init(&order, SERVER_TRACE, console->trace);
    order.seconds = values->seconds;
    order.pid = values->client;
    error = connection_send(&server->connection, &order, sizeof(order), other);
    return error ? error : send_file(console, server, fd_steal(&fd));
}

void end_trace(const struct console *console)
{
    struct server_trace order;

    server_message_init(&order, SERVER_TRACE, console->trace);
    list_for_each (struct server_process, server, &console->daemon->servers, link)
        if (is_traced(console, server))
            connection_send(&server->connection, &order, sizeof(order), -1);
}

void run_trace(struct console *console, const struct grammar_values *values)
{
    static uint32_t last_number;
    unsigned traced = 0;
    int error = 0;

    if (!values->seconds || values->seconds > SECONDS_MAX) {
        console_print(console, "A trace lasts from 1 to %u seconds", SECONDS_MAX);
        console_done(console, COMMAND_REJECTED);
        return;
    }
    console->trace = ++last_number;
    list_for_each (struct server_process, server, &console->daemon->servers, link) {
        if (error || !is_traced(console, server))
            continue;
        error = trace_server(console, server, values);
        traced++;
    }
    if (error)
        console_print(console, "The servers cannot be traced: %s", strerror(-error));
    else if (!traced)
        console_print(console, "No server of yours runs: the first program starts one");
    console_done(console, error || !traced ? COMMAND_FAILED : COMMAND_OK);
}
