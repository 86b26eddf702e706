/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The launch interface of CUDA 3: a function keeps a block shape, dynamic shared memory and bytes
 * of parameters, and cuLaunch*() starts it with what was set before. The parameters stay for the
 * next launch.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "client_library.h"
#include "client_prototypes.h"
#include "module_function.h"

#define RETIRED_PARAMS_MAX 4096u /* bytes; CUDA's kernels took no more when this was in use */

struct retired_launch {
    unsigned block[3];
    unsigned shared_size;
    unsigned params_size;
    unsigned char params[RETIRED_PARAMS_MAX];
};

/* Guards what all functions keep: two threads may set parameters of one. */
static pthread_mutex_t retired_lock = PTHREAD_MUTEX_INITIALIZER;

/* With the lock held. NULL when out of memory. */
static struct retired_launch *settings_of(struct function *function)
{
    struct retired_launch *settings = function->retired;

    if (settings)
        return settings;
    settings = calloc(1, sizeof(*settings));
    if (settings)
        settings->block[0] = settings->block[1] = settings->block[2] = 1;
    function->retired = settings;
    return settings;
}

/* The caller holds the lock, and goes on holding it while it uses the settings. */
static CUresult find_settings(CUfunction handle, struct retired_launch **ret_settings)
{
    struct function *function;
    CUresult result = function_enter(handle, &function);

    if (result != CUDA_SUCCESS)
        return result;
    *ret_settings = settings_of(function);
    return *ret_settings ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult client_cuFuncSetBlockShape(CUfunction hfunc, int x, int y, int z)
{
    _cleanup_mutex_ pthread_mutex_t *held = mutex_hold(&retired_lock);
    struct retired_launch *settings;
    CUresult result = find_settings(hfunc, &settings);

    if (result != CUDA_SUCCESS)
        return result;
    if (x <= 0 || y <= 0 || z <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    settings->block[0] = (unsigned)x;
    settings->block[1] = (unsigned)y;
    settings->block[2] = (unsigned)z;
    return CUDA_SUCCESS;
}

CUresult client_cuFuncSetSharedSize(CUfunction hfunc, unsigned int bytes)
{
    _cleanup_mutex_ pthread_mutex_t *held = mutex_hold(&retired_lock);
    struct retired_launch *settings;
    CUresult result = find_settings(hfunc, &settings);

    if (result == CUDA_SUCCESS)
        settings->shared_size = bytes;
    return result;
}

CUresult client_cuParamSetSize(CUfunction hfunc, unsigned int numbytes)
{
    _cleanup_mutex_ pthread_mutex_t *held = mutex_hold(&retired_lock);
    struct retired_launch *settings;
    CUresult result = find_settings(hfunc, &settings);

    if (result != CUDA_SUCCESS)
        return result;
    if (numbytes > RETIRED_PARAMS_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    settings->params_size = numbytes;
    return CUDA_SUCCESS;
}

CUresult client_cuParamSetv(CUfunction hfunc, int offset, void *ptr, unsigned int numbytes)
{
    _cleanup_mutex_ pthread_mutex_t *held = mutex_hold(&retired_lock);
    struct retired_launch *settings;
    CUresult result = find_settings(hfunc, &settings);

    if (result != CUDA_SUCCESS)
        return result;
    if (!ptr || offset < 0 || numbytes > RETIRED_PARAMS_MAX ||
        (unsigned)offset > RETIRED_PARAMS_MAX - numbytes)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(settings->params + offset, ptr, numbytes);
    return CUDA_SUCCESS;
}

CUresult client_cuParamSeti(CUfunction hfunc, int offset, unsigned int value)
{
    return client_cuParamSetv(hfunc, offset, &value, sizeof(value));
}

CUresult client_cuParamSetf(CUfunction hfunc, int offset, float value)
{
    return client_cuParamSetv(hfunc, offset, &value, sizeof(value));
}

/* A copy, because a launch may wait, and another thread may set parameters meanwhile. */
static CUresult copy_settings(CUfunction handle, struct retired_launch *ret_settings)
{
    _cleanup_mutex_ pthread_mutex_t *held = mutex_hold(&retired_lock);
    struct retired_launch *settings;
    CUresult result = find_settings(handle, &settings);

    if (result == CUDA_SUCCESS)
        *ret_settings = *settings;
    return result;
}

static CUresult launch_grid(CUfunction handle, int width, int height, CUstream stream)
{
    struct retired_launch set;
    CUresult result = copy_settings(handle, &set);
    size_t size = result == CUDA_SUCCESS ? set.params_size : 0;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, set.params, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};

    if (result != CUDA_SUCCESS)
        return result;
    if (width <= 0 || height <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    return client_cuLaunchKernel(handle, (unsigned)width, (unsigned)height, 1, set.block[0],
                                 set.block[1], set.block[2], set.shared_size, stream, NULL, extra);
}

CUresult client_cuLaunch(CUfunction f)
{
    return launch_grid(f, 1, 1, NULL);
}

CUresult client_cuLaunchGrid(CUfunction f, int grid_width, int grid_height)
{
    return launch_grid(f, grid_width, grid_height, NULL);
}

CUresult client_cuLaunchGridAsync(CUfunction f, int grid_width, int grid_height, CUstream hStream)
{
    return launch_grid(f, grid_width, grid_height, hStream);
}
