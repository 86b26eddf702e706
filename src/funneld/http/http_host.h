/* SPDX-License-Identifier: Apache-2.0 */
/* The names by which the page may be asked for. */
#pragma once

#include <stdbool.h>

/* Whether the value of a Host header is no name that its owner could have made to lead here: an
 * address, localhost, the name of this host, one that FUNNEL_METRICS_HOSTS names, or "" for none,
 * as no browser sends none. */
bool http_host_is_ours(const char *host);
