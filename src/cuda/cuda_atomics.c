/* SPDX-License-Identifier: Apache-2.0 */
/* See cuda_atomics.h. */
#include "cuda_atomics.h"

#include <stdbool.h>
#include <stddef.h>

static bool are_operations(const CUatomicOperation *operations, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if ((unsigned)operations[i] >= CU_ATOMIC_OPERATION_MAX)
            return false;
    return true;
}

CUresult cuda_atomics_tell(const unsigned known[CU_ATOMIC_OPERATION_MAX],
                           const CUatomicOperation *operations, unsigned count,
                           unsigned *ret_capabilities)
{
    if (!ret_capabilities || !operations || !count || !are_operations(operations, count))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++)
        ret_capabilities[i] = known[operations[i]];
    return CUDA_SUCCESS;
}
