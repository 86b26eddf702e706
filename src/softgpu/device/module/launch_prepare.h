/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches:
 * work that is in no stream yet, as an operation which a graph's launch begins when its turn comes.
 * To make one and throw it away is to check the work. Functions named _locked need soft_lock.
 */
#pragma once

#include "graph_model.h"
#include "soft_stream.h"

struct sg_kernel_info;
struct operation;

/* The caller has one reference to the operation. CUDA's errors of
 * cuLaunchKernelEx. The stream lends its priority, unless the kernel has its own, and its
 * multiprocessors. */
CUresult launch_prepare_locked(const struct graph_kernel *kernel, struct context *context,
                               const struct stream *stream, bool own_priority,
                               struct operation **ret_operation);

/* The stream of a launch: waits until its queue has space, without soft_lock. */
CUresult launch_stream_locked(CUstream handle, struct stream **ret_stream);
struct graph_kernel_info launch_params_of(const struct sg_kernel_info *info);
