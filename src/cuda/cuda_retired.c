/* SPDX-License-Identifier: Apache-2.0 */
/* See cuda_retired.h. */
#include "cuda_retired.h"

#include <stdlib.h>
#include <string.h>

static struct cuda_retired *get_or_make(struct cuda_retired **retired)
{
    if (*retired)
        return *retired;
    *retired = calloc(1, sizeof(**retired));
    if (*retired)
        (*retired)->block[0] = (*retired)->block[1] = (*retired)->block[2] = 1;
    return *retired;
}

CUresult cuda_retired_set_block(struct cuda_retired **retired, int x, int y, int z)
{
    if (!get_or_make(retired))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (x <= 0 || y <= 0 || z <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    (*retired)->block[0] = (unsigned)x;
    (*retired)->block[1] = (unsigned)y;
    (*retired)->block[2] = (unsigned)z;
    return CUDA_SUCCESS;
}

CUresult cuda_retired_set_shared(struct cuda_retired **retired, unsigned bytes)
{
    if (!get_or_make(retired))
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*retired)->shared_size = bytes;
    return CUDA_SUCCESS;
}

CUresult cuda_retired_set_size(struct cuda_retired **retired, unsigned bytes)
{
    if (!get_or_make(retired))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (bytes > CUDA_RETIRED_PARAMS_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    (*retired)->params_size = bytes;
    return CUDA_SUCCESS;
}

CUresult cuda_retired_set_param(struct cuda_retired **retired, int offset, const void *bytes,
                                unsigned size)
{
    if (!get_or_make(retired))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!bytes || offset < 0 || size > CUDA_RETIRED_PARAMS_MAX ||
        (unsigned)offset > CUDA_RETIRED_PARAMS_MAX - size)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy((*retired)->params + offset, bytes, size);
    return CUDA_SUCCESS;
}

CUresult cuda_retired_get(struct cuda_retired **retired, int width, int height,
                          struct cuda_retired *ret_copy)
{
    if (!get_or_make(retired))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (width <= 0 || height <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_copy = **retired;
    return CUDA_SUCCESS;
}

CUresult cuda_retired_launch(struct cuda_retired *copy, CUfunction function, int width, int height,
                             CUstream stream, cuda_launch_fn *launch)
{
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, copy->params, CU_LAUNCH_PARAM_BUFFER_SIZE,
                     &copy->params_size, CU_LAUNCH_PARAM_END};

    return launch(function, (unsigned)width, (unsigned)height, 1, copy->block[0], copy->block[1],
                  copy->block[2], copy->shared_size, stream, NULL, extra);
}
