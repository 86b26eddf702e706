/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Services: the servers that operators define by name. A service is a record that outlives the
 * processes which do its work. It listens at <pipe directory>/<name>/funnel. Its server serves the
 * programs that connect there, with the limits of the namespace that the socket belongs to. A
 * user's own server, uid_N, needs no service; a service of that name replaces it.
 */
#pragma once

#include <sys/types.h>

#include "daemon.h"
#include "mps_namespace.h"
#include "server_process.h"

#define SERVICES_MAX 64

struct service {
    struct list link;
    struct daemon *daemon;
    char name[SERVER_NAME_MAX];
    uid_t uid;
    char devices[SERVER_DEVICES_MAX];    /* "" = all */
    struct list namespaces;              /* the first one is the default */
    uint32_t timeslice_percent;          /* timeslice.h; 0 = none of its own */
    uint32_t isolation;                  /* enum isolation; 0 = that of the daemon */
    struct static_partitions partitions; /* its own, of MPS 3 */
};

/* Makes one that listens: 0, or -errno with a message in `ret_reason`. */
int service_create(struct daemon *daemon, const char *name, uid_t uid, const char *devices,
                   struct service **ret_service, char ret_reason[GRAMMAR_REASON_MAX]);

/* Changes the user, which is allowed while no server of that name runs. 0, or -EPERM with a
 * message.
 */
int service_set_owner(struct service *service, uid_t uid, char ret_reason[GRAMMAR_REASON_MAX]);

/* Does not stop its server, if one runs. Programs that wait for it are refused. */
void service_destroy(struct service *service);

/* The one of that name, or NULL. */
struct service *service_find(const struct daemon *daemon, const char *name);
struct mps_namespace *service_namespace(const struct service *service, const char *name);

/* Where programs find the server of that name. */
const char *service_directory(const struct daemon *daemon, const char *name);

/* The server of this service's programs. And that of programs which a user connects to the daemon's
 * own socket, with `ret_space` the namespace that they belong to, or NULL. */
struct server_route service_route(const struct service *service);
struct server_route service_route_of_user(const struct daemon *daemon, uid_t uid, gid_t gid,
                                          struct mps_namespace **ret_space);

/* The isolation that operators have set for programs of the namespace, or of no service if that is
 * NULL. */
uint32_t service_isolation(const struct daemon *daemon, const struct mps_namespace *space);

/* Whether the programs of that user are served. */
bool service_serves(const struct service *service, uid_t uid);

/* The static partitions that clients of the server of that name choose from: its own, else the
 * daemon's. */
struct static_partitions *service_partitions(struct daemon *daemon, const char *name);

/* Whether programs of the service have to name a partition: it has some, or one of its namespaces
 * is to have one. */
bool service_needs_partitions(const struct service *service);

/* A server has reported its devices: partitions get their places on them. */
void service_server_ready(const struct server_process *server);

/* Starts or stops accepting connections at all sockets, the daemon's own included: 0 or -ENOMEM. */
int services_listen(struct daemon *daemon, bool on);

void services_close(struct daemon *daemon);

/* Removes the sockets that a killed daemon has left in the pipe directory. */
void services_sweep(const char *pipe_directory);
