/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches. The arguments are checked now, so that a wrong shape is an error of this call. The grid
 * goes to the engine when its turn in the stream comes.
 */
#pragma once

#include "launch_prepare.h"

/* The caller has one reference to the operation. CUDA's errors of
 * cuLaunchKernelEx. The stream lends its priority, unless the kernel has its own, and its
 * multiprocessors. */
CUresult launch_prepare_locked(const struct graph_kernel *kernel, struct context *context,
                               const struct stream *stream, bool own_priority,
                               struct operation **ret_operation);

/* The stream of a launch: waits until its queue has space, without soft_lock. */
CUresult launch_stream_locked(CUstream handle, struct stream **ret_stream);
struct graph_kernel_info launch_params_of(const struct sg_kernel_info *info);
