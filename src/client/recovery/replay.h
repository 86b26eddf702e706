/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes what the client has at the server again under the same handles. With the library closed, by
 * the one thread that moves the client.
 */
#pragma once

#include "cuda_result.h"

/* Memory, which another server does not have yet. */
CUresult replay_memory(void);

/* Everything else: contexts' limits, libraries, modules, functions, streams, events and graphs.
 * Returns when the server has done it all. */
CUresult replay_objects(void);
