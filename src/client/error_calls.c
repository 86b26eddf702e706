/* SPDX-License-Identifier: Apache-2.0 */
/* cuGetErrorName and cuGetErrorString, and the calls to a profiler, which are marks in a trace. */
#include "client_prototypes.h"
#include "client_ranges.h"
#include "cuda_error.h"

CUresult client_cuGetErrorString(CUresult error, const char **pStr)
{
    *pStr = cuda_error_string(error);
    return *pStr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult client_cuGetErrorName(CUresult error, const char **pStr)
{
    *pStr = cuda_error_name(error);
    return *pStr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult client_cuProfilerStart(void)
{
    client_mark("cuProfilerStart");
    return CUDA_SUCCESS;
}

CUresult client_cuProfilerStop(void)
{
    client_mark("cuProfilerStop");
    return CUDA_SUCCESS;
}
