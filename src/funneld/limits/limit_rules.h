/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules: limits that an operator has set for a user or a named group. They replace the limits of
 * the server for every client of that user or group. What a client asks for itself can still only
 * tighten them. They last until the daemon is stopped (commands/settings.h).
 */
#pragma once

#include <sys/types.h>

#include "client_limits.h"

#define LIMIT_RULES_MAX 64

struct limit_rule {
    char group[HELLO_GROUP_MAX]; /* "" = the rule is about the user */
    uid_t uid;
    struct limit_change change;
};

struct limit_rules {
    struct limit_rule rule[LIMIT_RULES_MAX];
    unsigned count;
};

/* Adds to the rule of that user (group "") or group: 0 or -ENOSPC. */
int limit_rules_set(struct limit_rules *rules, const char *group, uid_t uid,
                    const struct limit_change *change);

bool limit_rules_have_group(const struct limit_rules *rules, const char *group);

/* Applies the rule of the user, and then that of the group as far as it is stricter: a client names
 * its group itself. */
void limit_rules_apply(const struct limit_rules *rules, const struct server_identity *identity,
                       const struct server_ready *ready, struct server_limits *limits);

/* Tightens limits to those that a client of that user has without a group; `limits_of_server` are
 * its server's. */
void limit_rules_bound(const struct limit_rules *rules, uid_t uid, const struct server_ready *ready,
                       const struct server_limits *limits_of_server, struct server_limits *limits);

/* The class of a program that asks for `asked`. The lowest that has been set for its user, its
 * group and, as `of_space`, its namespace bounds it (client_class.h). */
uint32_t limit_rules_class(const struct limit_rules *rules, const struct server_identity *identity,
                           uint32_t of_space, uint32_t asked);
