/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of clients and of users: names, meanings, and where each value comes from. */
#pragma once

#include <stdbool.h>

#include "server_protocol.h"
#include "usage_totals.h"

/* A name has no _total: where counters have it, and where not, is the format's business. */
struct client_family {
    const char *name, *unit, *help; /* unit: "" = none */
    bool is_counter;
    bool by_gpu; /* a sample for each device that the client uses */
    double (*value)(const struct server_status_row *row, unsigned device);
};

struct user_family {
    const char *name, *unit, *help;
    bool is_counter;
    double (*value)(const struct usage_total *total);
};

extern const struct client_family client_families[];
extern const unsigned client_family_count;

/* Sums over the clients of a user and group of a server, those that have ended included. */
extern const struct user_family user_families[];
extern const unsigned user_family_count;
