/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is done when nobody is at work, because it would hold up those who are: libraries that are
 * done with are unloaded, shares are made ahead, and when there are no clients at all, what was
 * kept for the next ones goes back.
 */
#pragma once

#include <stdint.h>

#include "server.h"

/* Since when there are no clients. Begins as zero. */
struct upkeep {
    unsigned round;
    uint64_t empty_at; /* clock_ns() since when there are no clients; 0 = there are some */
    bool trimmed;      /* since then */
};

/* The watching thread's, some times a second. */
void upkeep_run(struct server *server, struct upkeep *upkeep);
