/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors that a daemon leaves to the program that it becomes (reload.h): they stay open in
 * execve(). A memory file has a line for each with its purpose and its subject. The number of that
 * file is in the environment. No other process gets it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "list.h"

/* Of the lines. A daemon becomes only a program that knows the same. */
#define INHERITED_FORMAT "1"
#define INHERITED_FORMAT_VARIABLE "FUNNEL_RELOAD_FORMAT" /* for a program that is tried */

#define INHERITED_LOCK "lock"
#define INHERITED_LISTENER "listener"   /* about the socket's path */
#define INHERITED_METRICS "metrics"     /* about the address */
#define INHERITED_CLIENT "client"       /* about the directory of its namespace, or ""; its hello */
#define INHERITED_FRONT_END "front-end" /* a command of it is not under way ... */
#define INHERITED_RELOADER "reloader"   /* ... but for this one, which waits for the reload */

struct inherited {
    struct list link;
    char kind[16];
    int fd;
    char *about;
    size_t size; /* of the data */
    unsigned char *data;
};

/* ---- leaving ---- */

/* Adds one to `list`: 0 or -ENOMEM. The descriptor stays the caller's. */
int inherited_add(struct list *list, const char *kind, int fd, const char *about, const void *data,
                  size_t size);

/* Lets the descriptors stay open in execve(), and writes the list: 0 or -errno. */
int inherited_leave(const struct list *list);

/* execve() has failed: takes that back. */
void inherited_keep(const struct list *list);

/* ---- inheriting ---- */

/* Called once, first: reads what the program before has left to this process, if any. 0 or -errno.
 */
int inherited_read(void);

/* Whether this process was another program of the daemon's before. */
bool inherited_exists(void);

/* The descriptor of that kind and about that, which is the caller's then; -1 = none. */
int inherited_take(const char *kind, const char *about);

/* One of that kind, which the caller frees, and whose descriptor is the caller's; NULL = none. */
struct inherited *inherited_next(const char *kind);
void inherited_free(struct inherited *one);
