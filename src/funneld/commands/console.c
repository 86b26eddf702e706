/* SPDX-License-Identifier: Apache-2.0 */
/* See console.h. */
#include "console.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command_protocol.h"
#include "commands.h"
#include "fd.h"
#include "journal.h"
#include "server_process.h"
#include "service.h"
#include "settings.h"
#include "sock.h"
#include "state_query.h"
#include "user_owner.h"

static void console_free(struct console *console)
{
    if (console->logged)
        journal("UI closed");
    if (console->trace)
        end_trace(console);
    settings_end(console, COMMAND_FAILED);
    list_remove(&console->link);
    fd_close(&console->file);
    connection_close(&console->connection);
    free(console);
}

void console_send(struct console *console, const void *message, size_t size)
{
    connection_send(&console->connection, message, size, -1);
}

/* `text` comes from console_print() and is shorter than a message. */
static void send_text(struct console *console, const char *text)
{
    struct command_text message = {{COMMAND_MAGIC, COMMAND_OUTPUT}, ""};
    size_t length = strlen(text);

    memcpy(message.text, text, length);
    console_send(console, &message, sizeof(message.header) + length);
}

/* A line may repeat words of a client, and these must not command a terminal. */
static void disarm(char *text)
{
    for (; *text; text++) {
        bool controls = (unsigned char)*text < ' ' || *text == 0x7f;

        if (controls && *text != '\n' && *text != '\t')
            *text = '?';
    }
}

void console_print(struct console *console, const char *format, ...)
{
    uid_t before = journal_account(console->owner);
    char text[COMMAND_TEXT_MAX - 1];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    disarm(text);
    journal("%s", text);
    journal_account(before);
    send_text(console, text);
}

void console_done(struct console *console, int status)
{
    console_done_because(console, status, 0);
}

void console_done_because(struct console *console, int status, int reason)
{
    struct command_done message = {{COMMAND_MAGIC, COMMAND_DONE}, status, reason};

    console->busy = false;
    fd_close(&console->file);
    settings_end(console, status);
    console_send(console, &message, sizeof(message));
    if (console->gone)
        console_free(console);
    else
        connection_listen(&console->connection, true);
}

void console_answer(struct console *console, int status, const char *message)
{
    if (*message)
        console_print(console, "%s", message);
    console_done(console, status);
}

bool console_is_operator(const struct console *console)
{
    return console->uid == 0 || console->uid == console->daemon->uid;
}

bool console_may_manage(const struct console *console, const struct server_process *server)
{
    return console_is_operator(console) ||
           (!console->daemon->multiuser && console->uid == server->uid);
}

bool console_may_see(const struct console *console, const struct server_process *server)
{
    return console->daemon->multiuser || console_may_manage(console, server);
}

bool console_may_see_client(const struct console *console, uid_t uid)
{
    return console_is_operator(console) || console->uid == uid;
}

bool console_may_manage_service(const struct console *console, const struct service *service)
{
    return console_is_operator(console) ||
           (!console->daemon->multiuser && console->uid == service->uid);
}

/* The console is busy from here on until console_done(), which may be called at once. */
static void begin_command(struct console *console)
{
    console->busy = true;
    connection_listen(&console->connection, false);
}

static void run_line(struct console *console, const struct command_text *message, size_t size)
{
    char line[COMMAND_TEXT_MAX + 1];
    size_t length = size - sizeof(message->header);

    if (length > COMMAND_TEXT_MAX)
        length = COMMAND_TEXT_MAX;
    memcpy(line, message->text, length);
    line[length] = '\0';
    if (!console->logged) {
        journal("Commands of process %d of user %u", (int)console->pid, (unsigned)console->uid);
        journal("NEW UI");
    }
    console->logged = true;
    console->file = fd_steal(console->connection.file);
    begin_command(console);
    commands_run(console, line);
}

static void dispatch_command(void *owner, const void *data, size_t size)
{
    struct console *console = owner;
    const struct command_header *header = data;

    if (size < sizeof(*header) || header->magic != COMMAND_MAGIC) {
        console_free(console);
    } else if (header->kind == COMMAND_LINE) {
        run_line(console, data, size);
    } else if (header->kind == COMMAND_QUERY) {
        begin_command(console);
        state_query_answer(console);
    } else if (header->kind == COMMAND_METRICS) {
        begin_command(console);
        state_query_answer_metrics(console);
    } else {
        console_free(console);
    }
}

static void on_message(void *owner, const void *data, size_t size)
{
    uid_t before = journal_account(((struct console *)owner)->owner);

    dispatch_command(owner, data, size);
    journal_account(before);
}

static void on_closed(void *owner)
{
    struct console *console = owner;
    uid_t before = journal_account(console->owner);

    console->gone = true;
    if (!console->busy)
        console_free(console);
    journal_account(before);
}

static const struct connection_handlers console_handlers = {on_message, on_closed};

static struct console *add_console(struct daemon *daemon, int fd, pid_t pid, uid_t uid)
{
    struct console *console = calloc(1, sizeof(*console));

    if (!console) {
        fd_close(&fd);
        return NULL;
    }
    console->daemon = daemon;
    console->pid = pid;
    console->uid = uid;
    console->owner = user_owner(uid);
    console->file = -1;
    list_append(&daemon->consoles, &console->link);
    if (!connection_open(&console->connection, daemon->base, fd, &console_handlers, console)) {
        console->connection.takes_files = true;
        return console;
    }
    console_free(console);
    return NULL;
}

void console_create(struct daemon *daemon, int fd, pid_t pid, uid_t uid)
{
    add_console(daemon, fd, pid, uid);
}

struct console *console_inherit(struct daemon *daemon, int fd)
{
    pid_t pid;
    uid_t uid;
    gid_t gid;

    if (!sock_peer(fd, &pid, &uid, &gid))
        return add_console(daemon, fd, pid, uid);
    fd_close(&fd);
    return NULL;
}

/* It counts as one whose front end has died: it is freed when the command has been answered. */
void console_run_for_daemon(struct daemon *daemon, char *line)
{
    struct console *console = calloc(1, sizeof(*console));

    if (!console) {
        journal("\"%.200s\" cannot be run: %s", line, strerror(ENOMEM));
        return;
    }
    console->daemon = daemon;
    console->uid = console->owner = daemon->uid;
    console->connection.fd = console->file = -1;
    console->busy = console->gone = true;
    list_init(&console->connection.outbox);
    list_append(&daemon->consoles, &console->link);
    commands_run(console, line);
}

unsigned console_count(const struct daemon *daemon, uid_t owner)
{
    unsigned count = 0;

    list_for_each (struct console, console, &daemon->consoles, link)
        count += console->owner == owner;
    return count;
}

void console_close_all(struct daemon *daemon)
{
    list_for_each_safe (struct console, console, &daemon->consoles, link)
        console_free(console);
}
