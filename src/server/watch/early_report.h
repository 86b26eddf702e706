/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers report every two seconds what each client has used. They do so at once when a client
 * begins to share the device with one whose kernels are long. While that lasts, they do so twice a
 * second. By these reports the daemon finds a program that waits for long kernels, and moves the
 * other one (src/funneld/servers/lane_watch.h).
 */
#pragma once

#include <stdbool.h>

#include "server.h"
#include "server_protocol.h"
#include "usage_mark.h"

/* The sums of what a client has used. */
struct usage_mark usage_mark_of(const struct server_usage *usage);

/* What a client has used from one mark to the other. Less than LANE_BUSY_NS of kernels tells
 * nothing. */
bool usage_has_long_kernels(const struct usage_mark *since, const struct usage_mark *now);
bool usage_is_shared(const struct usage_mark *since, const struct usage_mark *now);

/* Whether a report is due. There are signs that a client waits, or they have just begun: they are
 * too few yet for the time since the last report. Arithmetic alone. */
bool report_pace_is_due(const struct report_pace *pace, uint64_t now, bool has_signs, bool begins);

/* The main thread, before there is a watchdog: 0 or -errno. */
int early_report_start(struct server *server);

/* The watchdog's: all 0 at first. */
struct sharing_watch {
    uint64_t shared_ns; /* accounting_shared_ns() in the last round */
    uint64_t look_at;   /* clock_ns() of the last look that it has asked for */
};

/* The watchdog, in each round: while clients share a device the main thread looks for signs between
 * heartbeats, too. An idle server does not wake for it. */
void early_report_watch(const struct server *server, struct sharing_watch *watch);

/* The main thread, with each heartbeat. */
void early_report_beat(struct server *server);
