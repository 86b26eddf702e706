/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A front end's connection. It asks one thing at a time: while a command waits for a server,
 * nothing more is read from it. A console whose front end has died stays until its command has
 * ended.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "daemon.h"
#include "peer.h"

struct server;

#define COMMAND_PENDING_MAX 256

struct console {
    struct list link;
    struct daemon *daemon;
    struct peer peer;
    pid_t pid;
    uid_t uid;
    bool busy;                         /* a command is under way */
    bool gone;                         /* the front end has died */
    char pending[COMMAND_PENDING_MAX]; /* a command that runs when a server has started, or "" */
    bool started;                      /* it has sent a command line: worth a word in the log */
};

/* Takes `fd`. */
void console_create(struct daemon *daemon, int fd, pid_t pid, uid_t uid);

/* One line of the answer, to the front end and to the log. */
void console_print(struct console *console, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A structured part of the answer. */
void console_send(struct console *console, const void *message, size_t size);

/* Ends the answer; frees the console if its front end has died meanwhile. */
void console_done(struct console *console, int status);

/* May it command the daemon; this server? */
bool console_is_operator(const struct console *console);
bool console_may_touch(const struct console *console, const struct server *server);

unsigned console_count(const struct daemon *daemon, uid_t uid);
void console_close_all(struct daemon *daemon);
