/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that would stall busy clients, and runs while none is busy. It unloads the libraries of the
 * unload queue, renews windows and creates partitions in advance. Without any client, it releases
 * cached objects. If clients are always busy and a cache is over budget, they are suspended
 * briefly. All that takes a tenth of the time at most while clients work.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "server.h"
#include "upkeep_budget.h"

/* The state of the upkeep. Begins as zero. */
struct upkeep {
    unsigned round;
    uint64_t empty_at;     /* clock_ns() since when there are no clients; 0 = there are some */
    bool trimmed;          /* the server has been trimmed since then */
    uint64_t retry_at;     /* clock_ns() of the next allowed suspension; 0 = at any time */
    uint64_t suspended_at; /* clock_ns() */
    struct upkeep_budget budget; /* of suspensions */
};

/* From any thread: whether a client has unfinished work, or is about to attach. */
bool server_is_busy(struct server *server);

/* The watchdog's, in each of its rounds. */
void upkeep_run(struct server *server, struct upkeep *upkeep);
