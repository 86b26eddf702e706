/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's figures as text for Prometheus: in its own format, or as OpenMetrics. They differ
 * in what a counter's family is called.
 */
#pragma once

#include <event2/buffer.h>

#include "daemon.h"
#include "status_query.h"

#define METRICS_TYPE_PROMETHEUS "text/plain; version=0.0.4; charset=utf-8"
#define METRICS_TYPE_OPENMETRICS "application/openmetrics-text; version=1.0.0; charset=utf-8"

struct metrics_view {
    bool is_openmetrics;
    bool shows_commands; /* the command lines of clients */
    bool is_one_user;    /* only the clients and sums of this one */
    uid_t uid;
};

/* Appends all metrics, as of what the query found. */
void metrics_text_add(struct evbuffer *out, const struct daemon *daemon,
                      const struct status_query *query, const struct metrics_view *view);
