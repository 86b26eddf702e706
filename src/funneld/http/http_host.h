/* SPDX-License-Identifier: Apache-2.0 */
/* The names by which the page may be asked for. */
#pragma once

#include <stdbool.h>

/* Whether the value of a Host header cannot be a foreign name that its owner made to lead here.
 * Such values are an address, localhost, the name of this host, and a name in FUNNEL_METRICS_HOSTS.
 * "" stands for no header, which no browser sends. */
bool http_host_is_ours(const char *host);
