/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts about kernels. cuFFT loads modules with one kernel of unknown name, and finds that kernel
 * by walking the module.
 */
#include "tables.h"

/* Returns how many kernels there are, not an error. */
static int for_each_function(CUcontext context, CUmodule module,
                             void (*visit)(void *user, CUfunction function), void *user)
{
    return cudart_ops->for_each_function(context, module, visit, user);
}

const table_word function_table[99] = {
    [0] = TABLE_SIZE(99),
    [1 ... 6] = UNKNOWN_SLOT,
    [7] = for_each_function,
    [8 ... 92] = UNKNOWN_SLOT,
    [93] = NULL,
    [94 ... 98] = UNKNOWN_SLOT,
};
