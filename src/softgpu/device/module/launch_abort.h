/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches by owner. So the kernels of one client of a server can be ended while those of its other
 * clients, in the same context, continue.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "list.h"

struct sg_engine;

/* A launch that has not been destroyed; a member of the launch's operation. Under soft_lock. */
struct owned_launch {
    struct list in_all;
    uint64_t owner;           /* of the thread that made the launch; 0: none */
    bool aborted;             /* it must not start any more */
    const char *kernel;       /* its name; lives as long as the module's instance */
    struct sg_engine *engine; /* where it runs; NULL while it does not */
    const void *user;         /* sg_launch.user */
};

/* Functions named _locked need soft_lock; owned_launch_for() concerns the calling thread alone. */

/* Registers a launch of the calling thread's owner, which begins with engine == NULL. */
void owned_launch_add_locked(struct owned_launch *launch, const char *kernel, const void *user);
/* The calling thread makes launches for that owner from now on; returns for whom it did before. */
uint64_t owned_launch_for(uint64_t owner);
/* Whose heap malloc in the launch's kernel takes from. */
uint64_t owned_launch_heap(const struct owned_launch *launch);
/* Forgets it. Allowed for a zeroed one, which was never added. */
void owned_launch_remove_locked(struct owned_launch *launch);
