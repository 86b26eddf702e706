/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of the client that the nodes of a graph need. */
#pragma once

#include "client_copy.h"
#include "graph_model.h"
#include "module_function.h"

/* The function of a kernel node in the node's context. CUDA_ERROR_INVALID_HANDLE or
 * CUDA_ERROR_INVALID_CONTEXT when either is gone. */
CUresult graph_node_function(const struct graph_work *work, struct function **ret_function);

/* The box of a copy node, and where its sides are; both are not written for a box of no bytes. */
CUresult graph_node_box(const struct graph_work *work, struct box *ret_box, enum place *ret_dst,
                        enum place *ret_src);
