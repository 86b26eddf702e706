/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that graphs allocate. */
#pragma once

#include "graph_memory.h"
#include "graph_model.h"

/* Takes and gives back the block of an allocation node. CUDA_ERROR_OUT_OF_MEMORY,
 * CUDA_ERROR_INVALID_VALUE for a device that is not there. */
CUresult graph_memory_take(CUcontext given, struct graph_memory *memory);
void graph_memory_give(struct graph_memory *memory);

/* Whether the process sees a device of that ordinal. */
bool graph_device_exists(CUdevice device);

/* After a launch was put on its stream: its memory is used until the launch is done. */
void graph_memory_launched(const struct graph_exec *exec);
