/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels as the work of nodes. All functions need the owner's lock. */
#pragma once

#include "graph_objects.h"

/* Storage for so many parameters and a buffer of `size` bytes, all zero: false, no memory; then the
 * caller still ends the kernel. */
bool graph_kernel_allocate(struct graph_kernel *kernel, unsigned count, size_t size);

/* Points each element of `params` at its place in the buffer. */
void graph_kernel_point(struct graph_kernel *kernel);
CUresult graph_kernel_copy(const struct graph_kernel *kernel, struct graph_kernel *ret_copy);
void graph_kernel_fini(struct graph_kernel *kernel);

/* `to` replaces `from`, which the caller frees next. Programs keep the arrays that they received,
 * and set the node by them repeatedly. So the node keeps the arrays when their sizes match. */
void graph_kernel_keep_arrays(struct graph_kernel *from, struct graph_kernel *to);

/* Whether kernel nodes have this attribute: streams and launches have more. */
bool graph_kernel_knows_attribute(CUlaunchAttributeID id);
CUDA_KERNEL_NODE_PARAMS graph_kernel_params(const struct graph_work *work);
CUresult graph_kernel_set_attribute(struct graph_kernel *kernel, CUlaunchAttributeID id,
                                    const CUlaunchAttributeValue *value);
CUresult graph_kernel_copy_attributes(struct graph_kernel *to, const struct graph_kernel *from);
