/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's own functions as operations of a stream.
 */
#pragma once

#include "stream_prepare.h"

CUresult host_function_prepare_locked(const CUDA_HOST_NODE_PARAMS *host,
                                      struct operation **ret_operation);

/* Has a worker thread call the function, when `behind`, if it is not NULL, has finished. */
void host_function_later_locked(struct operation *behind, CUhostFn function, void *user);
