/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The use of programs that have ended, for the status page: the sums that `funnel usage` makes of
 * the journal. The command makes them in another process. The journal may have many megabytes, and
 * the daemon's one thread has programs to hand over meanwhile.
 */
#pragma once

#include "http_server.h"

/* /api/usage?by=user,group&days=7 as JSON, with csv=1 as comma-separated values. `by` takes the
 * keys of funnel usage. */
void http_usage_answer(struct http_request *request);

/* Answers all questions that are open: the daemon ends. */
void http_usage_stop(void);
