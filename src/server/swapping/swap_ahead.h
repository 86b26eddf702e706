/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that page-locks host memory for evictions ahead, because the first eviction would take
 * ten times as long otherwise. It does so while two clients or more oversubscribe a device that is
 * nearly full, up to the quota swap-ahead.
 */
#pragma once

struct server;

/* 0 or -errno. */
int swap_ahead_start(struct server *server);
