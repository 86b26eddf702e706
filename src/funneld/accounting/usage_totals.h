/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sums of the clients that have ended, by server, user and group, since the daemon started.
 * To these the use of running clients is added where sums are asked for, so that sums only grow.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "server_protocol.h"

/* One per server, user and group. */
struct usage_total {
    char server[SERVER_NAME_MAX];
    uid_t uid, owner; /* user_owner.h */
    char group[HELLO_GROUP_MAX];
    uint64_t clients, failed; /* that have ended, and of them by an error */
    struct server_usage usage;
};

/* Programs name their groups as they like: of each owner more combinations than these share one of
 * the owner's, whose server and group are "(others)". Beyond the other number all share the last.
 */
#define USAGE_TOTALS_OF_OWNER_MAX 64u
#define USAGE_TOTALS_MAX 2048u

struct usage_totals {
    unsigned count;
    uint64_t faults; /* fatal GPU errors of servers */
    struct usage_total total[USAGE_TOTALS_MAX];
};

/* The totals of clients that have ended; the daemon's one thread owns them. */
struct usage_totals *usage_totals(void);

/* The one of that server, user and group; it is made where there is none. */
struct usage_total *usage_totals_find(struct usage_totals *totals, const char *server, uid_t uid,
                                      const char group[HELLO_GROUP_MAX]);

/* Adds counters, and takes them away. Averages, current values and texts stay as they are. */
void usage_add(struct server_usage *sum, const struct server_usage *usage);
void usage_subtract(struct server_usage *sum, const struct server_usage *usage);
