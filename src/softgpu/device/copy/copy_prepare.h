/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies and memsets:
 * work that is in no stream yet, as an operation which a graph's launch begins when its turn comes.
 * To make one and throw it away is to check the work.
 */
#pragma once

#include "soft_copy.h"

struct operation;

CUresult copy_prepare_locked(const struct copy_request *request, struct operation **ret_operation);
CUresult fill_prepare_locked(const CUDA_MEMSET_NODE_PARAMS *what, struct operation **ret_operation);
