/* SPDX-License-Identifier: Apache-2.0 */
/* The launch interface of CUDA 3: see cuda_retired.h. */
#include "soft_module.h"

CUresult soft_cuFuncSetBlockShape(CUfunction hfunc, int x, int y, int z)
{
    struct kernel *kernel;
    SOFT_LOCKED;
    CUresult result = kernel_find_locked(hfunc, &kernel);

    return result ? result : cuda_retired_set_block(&kernel->retired, x, y, z);
}

CUresult soft_cuFuncSetSharedSize(CUfunction hfunc, unsigned int bytes)
{
    struct kernel *kernel;
    SOFT_LOCKED;
    CUresult result = kernel_find_locked(hfunc, &kernel);

    return result ? result : cuda_retired_set_shared(&kernel->retired, bytes);
}

CUresult soft_cuParamSetSize(CUfunction hfunc, unsigned int numbytes)
{
    struct kernel *kernel;
    SOFT_LOCKED;
    CUresult result = kernel_find_locked(hfunc, &kernel);

    return result ? result : cuda_retired_set_size(&kernel->retired, numbytes);
}

CUresult soft_cuParamSetv(CUfunction hfunc, int offset, void *ptr, unsigned int numbytes)
{
    struct kernel *kernel;
    SOFT_LOCKED;
    CUresult result = kernel_find_locked(hfunc, &kernel);

    return result ? result : cuda_retired_set_param(&kernel->retired, offset, ptr, numbytes);
}

CUresult soft_cuParamSeti(CUfunction hfunc, int offset, unsigned int value)
{
    return soft_cuParamSetv(hfunc, offset, &value, sizeof(value));
}

CUresult soft_cuParamSetf(CUfunction hfunc, int offset, float value)
{
    return soft_cuParamSetv(hfunc, offset, &value, sizeof(value));
}

static CUresult copy_settings(CUfunction handle, int width, int height,
                              struct cuda_retired *ret_copy)
{
    struct kernel *kernel;
    SOFT_LOCKED;
    CUresult result = kernel_find_locked(handle, &kernel);

    return result ? result : cuda_retired_get(&kernel->retired, width, height, ret_copy);
}

CUresult soft_cuLaunchGridAsync(CUfunction f, int grid_width, int grid_height, CUstream hStream)
{
    struct cuda_retired copy;
    CUresult result = copy_settings(f, grid_width, grid_height, &copy);

    return result ? result
                  : cuda_retired_launch(&copy, f, grid_width, grid_height, hStream,
                                        soft_cuLaunchKernel);
}

CUresult soft_cuLaunchGrid(CUfunction f, int grid_width, int grid_height)
{
    return soft_cuLaunchGridAsync(f, grid_width, grid_height, NULL);
}

CUresult soft_cuLaunch(CUfunction f)
{
    return soft_cuLaunchGrid(f, 1, 1);
}
