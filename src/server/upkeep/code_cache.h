/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's use of the code cache on disk (src/codecache/). While no client is busy, a thread
 * loads the code that programs of earlier servers used. It also saves the code that programs use
 * now.
 */
#pragma once

#include "server.h"
#include "server_protocol.h"

struct code_cache;

/* Opens the directory and starts the thread: 0 or -errno. Without the directory the server works,
 * and its log has the reason. */
int code_cache_start(struct server *server);

/* Main thread, at an orderly end of the server: saves unsaved code, within a bounded time. */
void code_cache_finish(struct server *server);

/* For `funnel status`. */
void code_cache_describe(struct server *server, struct server_code_cache *ret_description);
