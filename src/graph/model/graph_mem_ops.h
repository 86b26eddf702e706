/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of memory operations: validity and sizes. */
#pragma once

#include "graph_objects.h"

CUresult graph_mem_ops_copy(unsigned count, const CUstreamBatchMemOpParams *ops,
                            struct graph_mem_ops *ret_copy);

void graph_mem_ops_keep_array(struct graph_mem_ops *from, struct graph_mem_ops *to);
