/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The orders of an operator to a client from the status page. The query names the client by
 * server=PID&id=ID&pid=PID, as /api/state lists it. The answer is {"status":N}: 0, a CUresult, or a
 * negative errno. Or 400 for a query that is wrong, and 404 for a client that is not there.
 */
#pragma once

#include "http_server.h"

/* /api/terminate, as `funnel terminate`. */
void http_order_terminate(struct http_request *request);

/* /api/limit, as `funnel limit --client`, with one or more of: sm_centipercent=1..10000, the share
 * in hundredths of a percent; memory=BYTES on each device, 0 = no limit; priority=0|1. */
void http_order_limit(struct http_request *request);
