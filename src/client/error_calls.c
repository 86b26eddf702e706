/* SPDX-License-Identifier: Apache-2.0 */
/* cuGetErrorName and cuGetErrorString, and the calls of a profiler, which do nothing. */
#include "client_prototypes.h"
#include "cuda_error.h"

CUresult client_cuGetErrorString(CUresult error, const char **pStr)
{
    if (!pStr)
        return CUDA_ERROR_INVALID_VALUE;
    *pStr = cuda_error_string(error);
    return *pStr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult client_cuGetErrorName(CUresult error, const char **pStr)
{
    if (!pStr)
        return CUDA_ERROR_INVALID_VALUE;
    *pStr = cuda_error_name(error);
    return *pStr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult client_cuProfilerStart(void)
{
    return CUDA_SUCCESS;
}

CUresult client_cuProfilerStop(void)
{
    return CUDA_SUCCESS;
}
