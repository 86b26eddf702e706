/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers report every two seconds what each client has used. They do so earlier while a client
 * shares the device with one whose kernels are long. By these reports the daemon finds a program
 * that waits for long kernels, and moves the other one (src/funneld/servers/lane_watch.h).
 */
#pragma once

#include <stdbool.h>

#include "server.h"
#include "server_protocol.h"
#include "usage_mark.h"

/* What a client has used by `usage` since the mark. Less than LANE_BUSY_NS of kernels tells
 * nothing. */
bool usage_has_long_kernels(const struct usage_mark *since, const struct server_usage *usage);
bool usage_is_shared(const struct usage_mark *since, const struct server_usage *usage);

/* The main thread: whether a report is worth it before its time. */
bool early_report_is_due(const struct server *server);

/* The main thread: all clients have been reported just now. */
void early_report_begin(struct server *server);
