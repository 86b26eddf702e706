/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Services: the servers that operators define by name. A service is a record that outlives the
 * processes which do its work. It listens at <pipe directory>/<name>/funnel, and who comes in there
 * is served by its server, with the limits of the namespace that the socket belongs to. A user's
 * own server, uid_N, needs no service; one of that name takes the user's programs over.
 */
#pragma once

#include <event2/event.h>
#include <sys/types.h>
#include <sys/un.h>

#include "daemon.h"
#include "funneld_server.h"
#include "grammar.h"

#define SERVICES_MAX 64
#define NAMESPACES_MAX 64 /* of a service */
#define NAMESPACE_DEFAULT "default"

/* A group of a server's clients: a socket to come in by, and limits of their own. */
struct mps_namespace {
    struct list link;
    struct service *service;
    char name[SERVER_NAME_MAX];
    struct limit_order order;
    char memory_text[24]; /* "4G", or "" */
    char directory[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
    int listen_fd;
    struct event *acceptor; /* none until there is a loop */
};

struct service {
    struct list link;
    struct daemon *daemon;
    char name[SERVER_NAME_MAX];
    uid_t uid;
    char devices[SERVER_DEVICES_MAX]; /* "" = all */
    struct list namespaces;           /* the first one is the default */
    struct statics statics;           /* its own partitions, of MPS 3 */
};

/* Makes one that listens: 0, or -errno with a sentence in `ret_reason`. */
int service_create(struct daemon *daemon, const char *name, uid_t uid, const char *devices,
                   struct service **ret_service, char ret_reason[GRAMMAR_REASON_MAX]);

/* While no server of that name runs. 0, or -EPERM with a sentence. */
int service_set_owner(struct service *service, uid_t uid, char ret_reason[GRAMMAR_REASON_MAX]);

/* Its server, if one runs, is not its concern. Programs that wait for it are turned away. */
void service_destroy(struct service *service);

/* NULL when there is none. */
struct service *service_find(const struct daemon *daemon, const char *name);
struct mps_namespace *service_namespace(const struct service *service, const char *name);

/* Where programs find the server of that name. */
const char *service_directory(const struct daemon *daemon, const char *name);

/* Where programs of this service are served; and those that a user brings to the daemon's own
 * socket, with `ret_entrance` the namespace they count for, or NULL. */
struct server_route service_route(const struct service *service);
struct server_route service_route_of_user(const struct daemon *daemon, uid_t uid, gid_t gid,
                                          struct mps_namespace **ret_entrance);

/* May a user's programs come in? */
bool service_serves(const struct service *service, uid_t uid);

/* The static partitions that clients of the server of that name have to choose from: its own, else
 * the daemon's. */
struct statics *service_statics(struct daemon *daemon, const char *name);

/* A server says what its devices are. */
void service_server_ready(const struct server *server);

/* Starts or stops accepting at all sockets. */
int services_listen(struct daemon *daemon, bool on);

void services_close(struct daemon *daemon);

/* Removes what a daemon that was killed left in the pipe directory. */
void services_sweep(const char *pipe_directory);

/* 0, or -errno with a sentence in `ret_reason`. */
int namespace_create(struct service *service, const char *name,
                     char ret_reason[GRAMMAR_REASON_MAX]);

/* Programs that wait for a server there are turned away. */
void namespace_destroy(struct mps_namespace *space);

/* Changes what is given in `values`. */
void namespace_set(struct mps_namespace *space, const struct grammar_values *values);
