/* SPDX-License-Identifier: Apache-2.0 */
/* A launch as the driver wants it for a kernel node of a graph. */
#pragma once

#include "function.h"
#include "graph_batch.h"

/* CUDA_KERNEL_NODE_PARAMS and what it points to. It must not be moved. */
struct kernel_call {
    size_t size;
    void *extra[5];
    CUDA_KERNEL_NODE_PARAMS params;
};

/* The parameters stay owned by the launch. */
static inline void kernel_call_init(struct kernel_call *call, const struct launch *launch)
{
    function_prefer(launch->function);
    *call = (struct kernel_call){
        .size = launch->shape.params_size,
        .extra = {CU_LAUNCH_PARAM_BUFFER_POINTER, (void *)launch->params,
                  CU_LAUNCH_PARAM_BUFFER_SIZE, &call->size, CU_LAUNCH_PARAM_END},
        .params =
            {
                .func = launch->function->driver,
                .gridDimX = launch->shape.grid[0],
                .gridDimY = launch->shape.grid[1],
                .gridDimZ = launch->shape.grid[2],
                .blockDimX = launch->shape.block[0],
                .blockDimY = launch->shape.block[1],
                .blockDimZ = launch->shape.block[2],
                .sharedMemBytes = launch->shape.shared,
                .extra = launch->shape.params_size ? call->extra : NULL,
            },
    };
}
