/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules: limits that an operator has set for a user or a named group. They take the place of the
 * server's own for every client of that user or group; what a client asks for itself still only
 * tightens them. Like all limits they are forgotten when the daemon ends.
 */
#pragma once

#include <sys/types.h>

#include "client_limits.h"

#define RULES_MAX 64

struct rule {
    char group[HELLO_GROUP_MAX]; /* "" = the rule is about the user */
    uid_t uid;
    struct limit_order order;
};

struct rules {
    struct rule rule[RULES_MAX];
    unsigned count;
};

/* Adds to what is known of that user (group "") or group: 0 or -ENOSPC. */
int rules_set(struct rules *rules, const char *group, uid_t uid, const struct limit_order *order);

/* A user's rule first, then the group's. */
void rules_apply(const struct rules *rules, const struct server_identity *identity,
                 const struct server_ready *ready, struct server_limits *limits);
