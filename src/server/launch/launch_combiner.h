/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flat combining of graph launches: the workers of several clients meet at the lock of NVIDIA's
 * driver, and a launch costs more where the driver's data is in the cache of another CPU. So a
 * worker that finds another one launching leaves its launch to that one, which makes all that it
 * finds behind its own.
 *
 * One combiner serves a context, which is current in all threads that use it. Any thread, unless a
 * comment says otherwise.
 */
#pragma once

#include "driver_table.h"

struct launch_combiner;

/* NULL when out of memory. */
struct launch_combiner *launch_combiner_create(void);

/* Nobody uses it any more. NULL is allowed. */
void launch_combiner_destroy(struct launch_combiner *combiner);

/* A place for one thread at a time, to be given back; -1 = there is none left. */
int launch_combiner_join(struct launch_combiner *combiner);
void launch_combiner_leave(struct launch_combiner *combiner, int place);

/* As cuGraphLaunch(), made by this thread or another one; without a combiner by this one. */
CUresult launch_combined(struct launch_combiner *combiner, int place, CUgraphExec exec,
                         CUstream stream);
