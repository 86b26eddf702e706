/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection of a front end. It has one command under way at a time: while that waits for a
 * server, no further message is read. A console whose front end has died stays until its command
 * has ended.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "connection.h"
#include "daemon.h"

struct server_process;
struct service;
struct setting;

#define COMMAND_PENDING_MAX 256

struct console {
    struct list link;
    struct daemon *daemon;
    struct connection connection;
    pid_t pid;
    uid_t uid, owner;                  /* user_owner.h */
    bool busy;                         /* a command is under way */
    bool gone;                         /* the front end has died */
    char pending[COMMAND_PENDING_MAX]; /* a command that runs when a server has started, or "" */
    bool logged;                       /* its first command line has been logged */
    bool awaits_quit;                  /* its command ends with the daemon */
    struct setting *setting;           /* what its command sets and the next daemon has to know */
    bool cuts_partitions;              /* its command changes static partitions */
    uint32_t trace;                    /* the number of the trace that it has ordered; 0 = none */
    int file;                          /* a descriptor that came with its command; -1 = none */
};

/* Takes `fd`. */
void console_create(struct daemon *daemon, int fd, pid_t pid, uid_t uid);

/* Goes on with a front end of the program before (reload.h). Takes `fd`. NULL when that fails. */
struct console *console_inherit(struct daemon *daemon, int fd);

/* Gives a command as the daemon's user, without a front end: the answer goes to the log alone. */
void console_run_for_daemon(struct daemon *daemon, char *line);

/* One line of the answer, to the front end and to the log. */
void console_print(struct console *console, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A structured part of the answer. */
void console_send(struct console *console, const void *message, size_t size);

/* The whole answer: one line, or none for "". Ends it as console_done() does. */
void console_answer(struct console *console, int status, const char *message);

/* Ends the answer; frees the console if its front end has died meanwhile. */
void console_done(struct console *console, int status);

/* The same with a reason for programs: enum suspend_result. */
void console_done_because(struct console *console, int status, int reason);

/* Whether it may see this server: with one server for all users every user may, but of its clients
 * only those of that user. */
bool console_may_see(const struct console *console, const struct server_process *server);
bool console_may_see_client(const struct console *console, uid_t uid);

/* Whether it may give commands that concern the daemon; this server; this service. */
bool console_is_operator(const struct console *console);
bool console_may_manage(const struct console *console, const struct server_process *server);
bool console_may_manage_service(const struct console *console, const struct service *service);

/* The front ends of a user, subordinate IDs included (user_owner.h). */
unsigned console_count(const struct daemon *daemon, uid_t owner);
void console_close_all(struct daemon *daemon);
