/* SPDX-License-Identifier: Apache-2.0 */
/* Which server a program belongs to, and which one it shares if that cannot be started. */
#pragma once

#include <stdbool.h>

#include "client_program.h"
#include "daemon.h"
#include "server_process.h"

struct client_routes {
    struct server_route first;
    struct server_route second; /* "" = none */
    bool in_quarantine;         /* the first is that of its user's programs in quarantine */
};

/* Whether the control groups of programs matter: a namespace names one, or the kernel limits the
 * memory of groups. */
bool client_routes_need_groups(const struct daemon *daemon);

/* The namespace for a process in these groups (control_group.h): the one with the nearest group, or
 * NULL. */
struct mps_namespace *client_routes_by_group(const struct daemon *daemon, const char *groups);

/* Of a program that connected to the namespace `*space`, or to the daemon's own socket if that is
 * NULL; then it becomes the namespace that the program belongs to, or stays NULL. */
void client_routes_find(const struct daemon *daemon, const struct server_identity *identity,
                        const struct client_program *program, struct mps_namespace **space,
                        struct client_routes *ret_routes);

/* The server of the first route cannot be started: the second takes its place, once. A device that
 * one process at a time may use has no second server, so programs in quarantine and those that are
 * not share the one that is there. False when the program has nowhere to go. */
bool client_routes_change(const struct daemon *daemon, struct client_routes *routes);
