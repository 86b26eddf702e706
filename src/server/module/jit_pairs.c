/* SPDX-License-Identifier: Apache-2.0 */
/* Filters options of the compiler; see jit_pairs.h. */
#include "jit_pairs.h"

#include <string.h>

static bool is_number(uint64_t option)
{
    switch (option) {
    case CU_JIT_MAX_REGISTERS:
    case CU_JIT_THREADS_PER_BLOCK:
    case CU_JIT_OPTIMIZATION_LEVEL:
    case CU_JIT_FALLBACK_STRATEGY:
    case CU_JIT_GENERATE_DEBUG_INFO:
    case CU_JIT_LOG_VERBOSE:
    case CU_JIT_GENERATE_LINE_INFO:
    case CU_JIT_CACHE_MODE:
    case CU_JIT_FAST_COMPILE:
    case CU_JIT_POSITION_INDEPENDENT_CODE:
    case CU_JIT_MIN_CTA_PER_SM:
    case CU_JIT_MAX_THREADS_PER_BLOCK:
    case CU_JIT_OVERRIDE_DIRECTIVE_VALUES:
        return true;
    default:
        return false;
    }
}

static bool chooses_target(uint64_t option)
{
    return option == CU_JIT_TARGET || option == CU_JIT_TARGET_FROM_CUCONTEXT;
}

unsigned jit_pairs_read(const void *pairs, uint32_t size, bool for_link, CUjit_option *ret_options,
                        void **ret_values)
{
    unsigned count = 0;
    uint64_t pair[2];

    for (uint32_t at = 0; at + sizeof(pair) <= size && count < JIT_PAIRS_MAX; at += sizeof(pair)) {
        memcpy(pair, (const unsigned char *)pairs + at, sizeof(pair));
        if (!is_number(pair[0]) && !(for_link && chooses_target(pair[0])))
            continue;
        ret_options[count] = (CUjit_option)pair[0];
        ret_values[count++] = (void *)(uintptr_t)pair[1];
    }
    return count;
}
