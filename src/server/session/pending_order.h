/* SPDX-License-Identifier: Apache-2.0 */
/* Orders of the daemon about one client that take a while. The main thread polls them until they
 * are done, or late, and then answers by RESULT. */
#pragma once

#include "server_life.h"

struct pending_order {
    struct server *server;
    uint32_t request;
    int32_t pid;
    uint32_t id;          /* 0 = every client of that pid */
    unsigned first, last; /* its numbers for sessions, among orders that replace one another */
    uint64_t deadline;    /* clock_ns() */
    /* Whether the order is done, or given up because it is late; then *ret_status is the answer. */
    bool (*poll)(const struct pending_order *order, bool is_late, int *ret_status);
};

/* Polls a copy of the order from now on; false when out of resources. */
bool pending_order_start(const struct pending_order *order);

/* Whether an order with these numbers is about the session. */
bool order_is_about(const struct session *session, int32_t pid, uint32_t id);

/* Visits each session of the server that an order is about: any structure with `pid` and `id`. */
#define order_for_each(order, session, server)                         \
    list_for_each (struct session, session, &(server)->sessions, link) \
        if (!order_is_about(session, (order)->pid, (order)->id)) {     \
        } else
