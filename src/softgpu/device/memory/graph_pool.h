/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that graphs allocate: it belongs to a device, and outlives launches. */
#pragma once

#include <stdbool.h>

#include "cuda_abi.h"
#include "graph_memory.h"

struct operation;
struct stream;

CUresult graph_memory_take_locked(CUcontext given, struct graph_memory *memory);
void graph_memory_give_locked(struct graph_memory *memory);
bool graph_device_exists(CUdevice device);
/* Not given back before the operation has finished. */
void graph_memory_behind_locked(struct graph_memory *memory, struct operation *operation);
/* cuMemFreeAsync of what a graph allocated. */
CUresult graph_memory_free_async_locked(struct graph_memory *memory, struct stream *stream);
