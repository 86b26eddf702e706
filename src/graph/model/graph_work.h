/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the work of nodes. All functions need the owner's lock. */
#pragma once

#include "graph_objects.h"

/* Copies of the caller's parameters, checked by the owner. */
CUresult graph_work_kernel(const CUDA_KERNEL_NODE_PARAMS *params, struct graph_work *ret_work);
CUresult graph_work_copy_box(const CUDA_MEMCPY3D *copy, CUcontext context,
                             struct graph_work *ret_work);

/* The address of a captured memset is checked only at the instantiation: libraries capture work
 * with made-up addresses to inspect its nodes. */
CUresult graph_work_captured_fill(const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext context,
                                  struct graph_work *ret_work);
CUresult graph_work_fill(const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext context,
                         struct graph_work *ret_work);
CUresult graph_work_host(const CUDA_HOST_NODE_PARAMS *host, struct graph_work *ret_work);
CUresult graph_work_child(const struct graph *child, struct graph_work *ret_work);
CUresult graph_work_event(CUgraphNodeType type, CUevent event, struct graph_work *ret_work);

/* Any kind but allocations and frees; CUDA_ERROR_NOT_SUPPORTED for a kind that Funnel does not
 * have. */
CUresult graph_work_any(const CUgraphNodeParams *params, struct graph_work *ret_work);

/* The owner checks the work; work that it refuses is freed. */
CUresult graph_work_check(struct graph_work *work, struct graph_work *ret_work);

CUresult graph_work_mem_ops(const CUDA_BATCH_MEM_OP_NODE_PARAMS *params,
                            struct graph_work *ret_work);
