/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that is in no stream yet: each family makes an operation of it, which a graph's launch
 * begins when its turn comes. To make one and throw it away is to check the work.
 */
#pragma once

#include "graph_model.h"
#include "soft_copy.h"
#include "soft_stream.h"

struct sg_kernel_info;

/* The stream lends its priority, unless the kernel has its own, and its multiprocessors. */
CUresult launch_prepare_locked(const struct graph_kernel *kernel, struct context *context,
                               const struct stream *stream, bool own_priority,
                               struct operation **ret_operation);
CUresult copy_prepare_locked(const struct copy_request *request, struct operation **ret_operation);
CUresult fill_prepare_locked(const CUDA_MEMSET_NODE_PARAMS *what, struct operation **ret_operation);
CUresult host_function_prepare_locked(const CUDA_HOST_NODE_PARAMS *host,
                                      struct operation **ret_operation);
CUresult mem_ops_prepare_locked(unsigned count, const CUstreamBatchMemOpParams *ops,
                                struct operation **ret_operation);
/* For a record or a wait; one of the next two says which, when it is about to be begun. */
CUresult event_prepare_locked(CUevent handle, struct operation **ret_operation);
void event_recorded_locked(CUevent handle, struct operation *record);
void event_awaited_locked(CUevent handle, struct operation *wait);

/* Has a worker thread call the function, when `behind`, if it is not NULL, has finished. */
void host_function_later_locked(struct operation *behind, CUhostFn function, void *user);

/* The stream for a launch: waits until there is room in it. */
CUresult launch_stream_locked(CUstream handle, struct stream **ret_stream);
struct graph_kernel_info launch_params_of(const struct sg_kernel_info *info);
