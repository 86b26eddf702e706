/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the client's objects at the server again under the same handles. With the library closed,
 * by the one thread that moves the client.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cuda_result.h"

/* Whether the client has all descriptors that show its memory to another server. */
bool replay_has_memory(void);

/* The client has no use for that memory any more, which its descriptors keep from others. */
void replay_give_up_memory(void);

/* Memory, which another server does not have yet. */
CUresult replay_memory(void);

/* What variables hold, as the last server has saved it: a file, or -1. And the change of devices
 * (attach.h) that the client makes with the move, or 0. */
struct replay_variables {
    int fd;
    uint64_t size;
    uint32_t device_change;
};

/* Everything else: contexts' limits, libraries, modules, functions, streams, events and graphs.
 * Without `variables` those of modules keep the values of the load. Returns when the server has
 * done it all. */
CUresult replay_objects(const struct replay_variables *variables);
