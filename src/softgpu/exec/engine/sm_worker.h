/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads that run blocks. Each has some of the virtual SMs, and runs the resident blocks of
 * these in round-robin order.
 *
 * An SM takes a new block when its last block has ended, or has used up its time slice and another
 * block fits. So blocks spread over the SMs first, and blocks that wait for each other all run.
 */
#pragma once

#include <stdbool.h>

struct sg_engine;

/* Starts the threads that do not run yet; false when one cannot be started. The caller holds the
 * engine's lock. */
bool sm_workers_start_locked(struct sg_engine *engine);
