/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names and descriptions of results.
 */
#include "cuda_error.h"
#include "soft.h"

static CUresult answer_text(const char *text, const char **ret_text)
{
    *ret_text = text;
    return text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult soft_cuGetErrorName(CUresult error, const char **pStr)
{
    return answer_text(cuda_error_name(error), pStr);
}

CUresult soft_cuGetErrorString(CUresult error, const char **pStr)
{
    return answer_text(cuda_error_string(error), pStr);
}
