/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a context handle stands for another context (as a tool's wrapper may). Ours never do.
 */
#include "tables.h"

static CUresult unwrap(CUcontext context, uint32_t *ret_is_wrapped, CUcontext *ret_real)
{
    if (!ret_is_wrapped)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_is_wrapped = 0;
    return CUDA_SUCCESS;
}

static uint32_t wraps_contexts(void)
{
    return 0;
}

const table_word context_checks_table[15] = {
    [0] = TABLE_SIZE(15), [1] = UNKNOWN_SLOT,        [2] = unwrap,
    [3] = wraps_contexts, [4 ... 14] = UNKNOWN_SLOT,
};
