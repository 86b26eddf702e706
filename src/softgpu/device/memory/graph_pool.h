/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that graphs allocate: it belongs to a device, and outlives launches. The functions
 * need soft_lock, all but graph_device_exists().
 */
#pragma once

#include <stdbool.h>

#include "cuda_abi.h"
#include "graph_memory.h"

struct operation;
struct stream;

/* Allocates memory->size bytes in the context given, or in the primary one of memory->device, and
 * fills in address and id. CUDA_ERROR_INVALID_VALUE, _INVALID_CONTEXT, _OUT_OF_MEMORY. */
CUresult graph_memory_take_locked(CUcontext given, struct graph_memory *memory);
/* Frees it once the operations before it have finished; at the latest with its context. */
void graph_memory_give_locked(struct graph_memory *memory);
bool graph_device_exists(CUdevice device);
/* Not given back before the operation has finished, to which it keeps a reference. NULL: at once.
 */
void graph_memory_behind_locked(struct graph_memory *memory, struct operation *operation);
/* cuMemFreeAsync of a graph's memory: CUDA_ERROR_INVALID_VALUE when it is free already;
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult graph_memory_free_async_locked(struct graph_memory *memory, struct stream *stream);
