/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prepares copies and memsets as operations outside of a stream; a graph's launch begins them
 * later. Making and dropping one only checks the work. Both functions need soft_lock and give the
 * caller one reference. CUDA_ERROR_INVALID_VALUE for empty work, or memory that the driver does not
 * know; CUDA_ERROR_OUT_OF_MEMORY.
 */
#pragma once

#include "soft_copy.h"

struct operation;

CUresult copy_prepare_locked(const struct copy_request *request, struct operation **ret_operation);
CUresult fill_prepare_locked(const CUDA_MEMSET_NODE_PARAMS *what, struct operation **ret_operation);
