/* SPDX-License-Identifier: Apache-2.0 */
/* Memsets, as nodes of graphs describe them. */
#pragma once

#include "client_memory.h"
#include "cuda_graph.h"

/* Whether this can be set: CUDA_SUCCESS, or CUDA_ERROR_INVALID_VALUE. If it is not empty,
 * *ret_place says where it is. */
CUresult memset_check(const CUDA_MEMSET_NODE_PARAMS *fill, enum place *ret_place);
