/* SPDX-License-Identifier: Apache-2.0 */
/* The server of a program, and the one that it shares if that cannot be started. */
#pragma once

#include <stdbool.h>

#include "client_program.h"
#include "daemon.h"
#include "server_process.h"

struct client_routes {
    struct server_route first;
    unsigned changes;   /* of client_routes_change() */
    uint32_t class;     /* enum client_class: that of the program */
    bool is_of_program; /* another executable may have another route */
};

/* Whether the control groups of programs matter: a namespace names one, or the kernel limits the
 * memory of groups. */
bool client_routes_need_groups(const struct daemon *daemon);

/* The namespace for a process in these groups (control_group.h): the one with the nearest group, or
 * NULL. */
struct mps_namespace *client_routes_by_group(const struct daemon *daemon, const char *groups);

/* Of a program that connected to the namespace `*space`, or to the daemon's own socket if that is
 * NULL. NULL becomes the namespace that the program belongs to, if there is one. `hello` has the
 * class and the isolation that it asks for, and `choice` is what has been chosen for it since it
 * came. */
void client_routes_find(const struct daemon *daemon, const struct server_identity *identity,
                        const struct client_program *program, const struct hello *hello,
                        const struct lane_choice *choice, struct mps_namespace **space,
                        struct client_routes *ret_routes);

/* The server of the first route cannot be started: the main lane takes its place, or else another
 * lane that is there. A device that one process at a time may use has no second server, so all
 * programs of the service share one. False when the program has nowhere to go. */
bool client_routes_change(const struct daemon *daemon, struct client_routes *routes);
