/* SPDX-License-Identifier: Apache-2.0 */
/* The launch interface of CUDA 3: see cuda_retired.h. */
#include <pthread.h>

#include "cleanup.h"
#include "client_library.h"
#include "client_prototypes.h"
#include "cuda_retired.h"
#include "module_function.h"

/* Guards the stored parameters of all functions. */
static pthread_mutex_t retired_lock = PTHREAD_MUTEX_INITIALIZER;

#define RETIRED_LOCKED _cleanup_mutex_ pthread_mutex_t *held = mutex_hold(&retired_lock)

CUresult client_cuFuncSetBlockShape(CUfunction hfunc, int x, int y, int z)
{
    struct function *function;
    CUresult result = function_enter(hfunc, &function);
    RETIRED_LOCKED;

    return result ? result : cuda_retired_set_block(&function->retired, x, y, z);
}

CUresult client_cuFuncSetSharedSize(CUfunction hfunc, unsigned int bytes)
{
    struct function *function;
    CUresult result = function_enter(hfunc, &function);
    RETIRED_LOCKED;

    return result ? result : cuda_retired_set_shared(&function->retired, bytes);
}

CUresult client_cuParamSetSize(CUfunction hfunc, unsigned int numbytes)
{
    struct function *function;
    CUresult result = function_enter(hfunc, &function);
    RETIRED_LOCKED;

    return result ? result : cuda_retired_set_size(&function->retired, numbytes);
}

CUresult client_cuParamSetv(CUfunction hfunc, int offset, void *ptr, unsigned int numbytes)
{
    struct function *function;
    CUresult result = function_enter(hfunc, &function);
    RETIRED_LOCKED;

    return result ? result : cuda_retired_set_param(&function->retired, offset, ptr, numbytes);
}

CUresult client_cuParamSeti(CUfunction hfunc, int offset, unsigned int value)
{
    return client_cuParamSetv(hfunc, offset, &value, sizeof(value));
}

CUresult client_cuParamSetf(CUfunction hfunc, int offset, float value)
{
    return client_cuParamSetv(hfunc, offset, &value, sizeof(value));
}

static CUresult copy_settings(CUfunction handle, int width, int height,
                              struct cuda_retired *ret_copy)
{
    struct function *function;
    CUresult result = function_enter(handle, &function);
    RETIRED_LOCKED;

    return result ? result : cuda_retired_get(&function->retired, width, height, ret_copy);
}

CUresult client_cuLaunchGridAsync(CUfunction f, int grid_width, int grid_height, CUstream hStream)
{
    struct cuda_retired copy;
    CUresult result = copy_settings(f, grid_width, grid_height, &copy);

    return result ? result
                  : cuda_retired_launch(&copy, f, grid_width, grid_height, hStream,
                                        client_cuLaunchKernel);
}

CUresult client_cuLaunchGrid(CUfunction f, int grid_width, int grid_height)
{
    return client_cuLaunchGridAsync(f, grid_width, grid_height, NULL);
}

CUresult client_cuLaunch(CUfunction f)
{
    return client_cuLaunchGrid(f, 1, 1);
}
