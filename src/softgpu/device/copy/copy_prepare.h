/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies and memsets:
 * work that is in no stream yet, as an operation which a graph's launch begins when its turn comes.
 * To make one and throw it away is to check the work. Both need soft_lock and leave the caller one
 * reference. CUDA_ERROR_INVALID_VALUE for what is empty or not all in memory that the driver knows;
 * CUDA_ERROR_OUT_OF_MEMORY.
 */
#pragma once

#include "soft_copy.h"

struct operation;

CUresult copy_prepare_locked(const struct copy_request *request, struct operation **ret_operation);
CUresult fill_prepare_locked(const CUDA_MEMSET_NODE_PARAMS *what, struct operation **ret_operation);
