/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's use of the code cache on disk (src/codecache/): a thread loads, while no client is
 * busy, what programs of earlier servers have used, and saves what programs use now.
 */
#pragma once

#include "server.h"
#include "server_protocol.h"

struct code_cache;

/* Opens the directory and starts the thread: 0 or -errno. A server without the directory works as
 * well, and its log says why. */
int code_cache_start(struct server *server);

/* Main thread, when the server ends in order: saves what has not been saved, for a bounded time. */
void code_cache_finish(struct server *server);

/* What `funnel status` shows. */
void code_cache_describe(struct server *server, struct server_code_cache *ret_description);
