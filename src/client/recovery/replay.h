/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the client's objects at the server again under the same handles. With the library closed,
 * by the one thread that moves the client.
 */
#pragma once

#include <stdbool.h>

#include "cuda_result.h"

/* Whether the client has all descriptors that show its memory to another server. */
bool replay_has_memory(void);

/* Memory, which another server does not have yet. */
CUresult replay_memory(void);

/* Everything else: contexts' limits, libraries, modules, functions, streams, events and graphs.
 * Returns when the server has done it all. */
CUresult replay_objects(void);
