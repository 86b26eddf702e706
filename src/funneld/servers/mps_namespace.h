/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Namespaces of MPS 3: groups of a server's clients. Each has a socket of its own that its programs
 * connect to, and limits of its own.
 */
#pragma once

#include <event2/event.h>
#include <sys/un.h>

#include "client_limits.h"
#include "grammar.h"
#include "list.h"

#define NAMESPACES_MAX 64 /* of a service */
#define NAMESPACE_DEFAULT "default"

struct service;

struct mps_namespace {
    struct list link;
    struct service *service;
    char name[SERVER_NAME_MAX];
    struct limit_change change;
    char memory_text[24];            /* "4G", or "" */
    char cgroup[GRAMMAR_CGROUP_MAX]; /* its programs come from this control group; "" = none */
    uint32_t cgroup_depth;           /* and from so many levels below, or GRAMMAR_LEVELS_ALL */
    char partition[65]; /* the SM partition of its programs on that device; "" = they name one */
    char partition_device[GRAMMAR_DEVICE_MAX];
    char directory[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
    int listen_fd;
    struct event *acceptor; /* NULL until there is a loop */
};

/* Names of services and namespaces: lower-case letters, digits and _, and not those of other files
 * in the pipe directory. The function service_name_check() returns 0, or -EINVAL with a message. */
bool service_name_is_lower_case(const char *name);
bool service_name_is_reserved(const char *name);
int service_name_check(const char *name, char ret_reason[GRAMMAR_REASON_MAX]);

/* Creates one that an operator names, or one that is known to be allowed: 0, or -errno with a
 * message in `ret_reason`. */
int namespace_create(struct service *service, const char *name,
                     char ret_reason[GRAMMAR_REASON_MAX]);
int namespace_add(struct service *service, const char *name, char ret_reason[GRAMMAR_REASON_MAX]);

/* Programs that wait for a server there are refused. */
void namespace_destroy(struct mps_namespace *space);

/* Accepts connections, once there is a loop: 0 or -ENOMEM. */
int namespace_listen(struct mps_namespace *space);

/* Changes what is given in `values`. */
void namespace_set(struct mps_namespace *space, const struct grammar_values *values);
