/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that would stall busy clients, and is done while there are none: retired libraries are
 * unloaded, windows are renewed, partitions are created in advance, and when there are no clients
 * at all, what was kept for the next ones is released. Where clients are always busy, and much has
 * been kept, they are held back for a moment.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "server.h"

/* The state of the upkeep. Begins as zero. */
struct upkeep {
    unsigned round;
    uint64_t empty_at; /* clock_ns() since when there are no clients; 0 = there are some */
    bool trimmed;      /* the server has been trimmed since then */
    uint64_t retry_at; /* clock_ns(): clients are not held back before; 0 = they may be */
};

/* From any thread: whether a client has work that is not done, or is about to attach. */
bool server_is_busy(struct server *server);

/* The watchdog's, in each of its rounds. */
void upkeep_run(struct server *server, struct upkeep *upkeep);
