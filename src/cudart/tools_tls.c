/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calling thread's state as tools see it. In spite of the name it is no mere tooling: cuBLAS
 * asks it for the current context before every choice of a kernel.
 */
#include "tables.h"

static CUresult get_current_context(CUcontext *ret_context)
{
    if (!ret_context)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_context = cudart_ops->current_context();
    return CUDA_SUCCESS;
}

const table_word tools_tls_table[3] = {
    TABLE_SIZE(3),
    UNKNOWN_SLOT,
    get_current_context,
};
