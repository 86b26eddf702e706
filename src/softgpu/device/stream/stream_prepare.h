/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host functions, stream memory operations and events. They are work that is in no stream yet: an
 * operation which a graph's launch begins when its turn comes. To make one and throw it away is to
 * check the work.
 */
#pragma once

#include "soft.h"
#include "soft_stream.h"

struct operation;

CUresult host_function_prepare_locked(const CUDA_HOST_NODE_PARAMS *host,
                                      struct operation **ret_operation);
CUresult mem_ops_prepare_locked(unsigned count, const CUstreamBatchMemOpParams *ops,
                                struct operation **ret_operation);
/* The record that belongs to a launch, behind it; of a captured one such edges from its node. */
CUresult event_record_of_launch(CUevent handle, CUstream stream, CUgraphEdgeData data);
/* For a launch: CUDA_ERROR_INVALID_HANDLE, or CUDA_ERROR_NOT_SUPPORTED for an event with a time. */
CUresult event_check_of_launch(CUevent handle);
/* Prepares a record or a wait; one of the next two functions decides, just before it begins. */
CUresult event_prepare_locked(CUevent handle, struct operation **ret_operation);
void event_recorded_locked(CUevent handle, struct operation *record);
void event_awaited_locked(CUevent handle, struct operation *wait);

/* Has a worker thread call the function, when `behind`, if it is not NULL, has finished. */
void host_function_later_locked(struct operation *behind, CUhostFn function, void *user);
