/* SPDX-License-Identifier: Apache-2.0 */
/* Which launch attributes and values a launch may carry, as NVIDIA's driver 580 has it. */
#pragma once

#include <stdbool.h>

#include "cuda_abi.h"

/* How many memory domains an SM of compute capability 9.0 tells apart. */
#define CUDA_MEM_SYNC_DOMAINS 4u

/* The value that streams and nodes have before a program sets it. */
#define CUDA_MEM_SYNC_MAP ((CUlaunchMemSyncDomainMap){.default_ = 0, .remote = 1})

bool cuda_mem_sync_map_is_possible(CUlaunchMemSyncDomainMap map);

/* CUDA_ERROR_INVALID_VALUE for an unknown attribute, or a value that the attribute cannot have.
 * Events are not looked at, only their flags. `captured`: the launch becomes a node; a
 * device-updatable one, and an event that is none of the graph's, are CUDA_ERROR_NOT_SUPPORTED. */
CUresult cuda_launch_attribute_check(const CUlaunchAttribute *attribute, bool captured);

/* The event that a launch with this attribute records; false where it records none. */
bool cuda_launch_attribute_event(const CUlaunchAttribute *attribute, CUevent *ret_event);

/* For such an attribute: the edges that lead to the waiters of that event. */
CUgraphEdgeData cuda_launch_attribute_edge(const CUlaunchAttribute *attribute);
