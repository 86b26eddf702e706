/* SPDX-License-Identifier: Apache-2.0 */
/* The last five minutes, for the time lines of the status page: every two seconds what each client
 * has used so far. Kept in memory only, and only while the page is served. */
#pragma once

#include <event2/buffer.h>

#include "daemon.h"

/* 0 or -ENOMEM. */
int http_history_start(struct daemon *daemon);
void http_history_stop(void);

/* Appends an array of samples, the oldest first: [time, [[server, client, GPU seconds, SM seconds,
 * bytes], ...]]. */
void http_history_add(struct evbuffer *out);
