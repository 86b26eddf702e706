/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main thread's event loop: a thin layer over libevent, whose `struct event` would collide with
 * that of clients.
 */
#pragma once

#include <stdbool.h>

struct loop;
struct watch;

typedef void (*watch_handler)(void *context, int fd);

/* NULL when out of resources. */
struct loop *loop_create(void);

/* Runs until loop_stop(). */
void loop_run(struct loop *loop);

/* From the loop's own thread. */
void loop_stop(struct loop *loop);

/* Calls `handler` while `fd` is readable. NULL when out of resources. */
struct watch *loop_watch_readable(struct loop *loop, int fd, watch_handler handler, void *context);

/* Calls `handler` on every change of a socket that another thread reads: once for each message, and
 * once when the peer hangs up. The handler calls sock_hung_up(). */
struct watch *loop_watch_changes(struct loop *loop, int fd, watch_handler handler, void *context);

/* Calls `handler` when the process gets a signal; `fd` is its number. */
struct watch *loop_watch_signal(struct loop *loop, int signal, watch_handler handler,
                                void *context);

/* NULL is allowed. The descriptor stays open. */
void watch_destroy(struct watch *watch);
