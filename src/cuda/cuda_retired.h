/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The launch interface of CUDA 3. A function keeps a block shape, dynamic shared memory and bytes
 * of parameters, and cuLaunch*() starts it with them. The parameters stay for the next launch.
 *
 * A driver keeps a pointer for each function, NULL at first, and frees it with the function. Two
 * threads may set parameters of one function, so the driver has a lock for these calls.
 */
#pragma once

#include "cuda_abi.h"

#define CUDA_RETIRED_PARAMS_MAX 4096u /* bytes: kernels took no more at that time */

struct cuda_retired {
    unsigned block[3];
    unsigned shared_size;
    size_t params_size;
    unsigned char params[CUDA_RETIRED_PARAMS_MAX];
};

/* CUDA_ERROR_INVALID_VALUE, or CUDA_ERROR_OUT_OF_MEMORY. */
CUresult cuda_retired_set_block(struct cuda_retired **retired, int x, int y, int z);
CUresult cuda_retired_set_shared(struct cuda_retired **retired, unsigned bytes);
CUresult cuda_retired_set_size(struct cuda_retired **retired, unsigned bytes);
CUresult cuda_retired_set_param(struct cuda_retired **retired, int offset, const void *bytes,
                                unsigned size);
/* A copy of the parameters, for a grid of this size: the launch itself may wait, without the lock.
 */
CUresult cuda_retired_get(struct cuda_retired **retired, int width, int height,
                          struct cuda_retired *ret_copy);

/* cuLaunchKernel of the driver. */
typedef CUresult cuda_launch_fn(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                unsigned int gridDimZ, unsigned int blockDimX,
                                unsigned int blockDimY, unsigned int blockDimZ,
                                unsigned int sharedMemBytes, CUstream hStream, void **kernelParams,
                                void **extra);
CUresult cuda_retired_launch(struct cuda_retired *copy, CUfunction function, int width, int height,
                             CUstream stream, cuda_launch_fn *launch);
