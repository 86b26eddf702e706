/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool in a round of the watchdog: how busy its workers were, how many of them serve from now
 * on, and which of them has which session.
 */
#pragma once

#include "pool_state.h"
#include "server.h"

/* The watchdog, with the server's lock, while the pool is wanted. `trains`: worker_pool.h. */
void pool_watch_update_locked(struct server *server, struct worker_pool *pool, bool trains);
