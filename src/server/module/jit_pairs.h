/* SPDX-License-Identifier: Apache-2.0 */
/* JIT options as they travel: pairs of u64, an option and its value. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cuda_abi.h"

#define JIT_PAIRS_MAX 32u

/* Takes the options whose value is a number out of `size` bytes of pairs; values of others would be
 * pointers into the client. Those that choose what is compiled for, and so where the code can run,
 * only for a linking job. Both results have room for JIT_PAIRS_MAX; the return value is how many
 * there are. */
unsigned jit_pairs_read(const void *pairs, uint32_t size, bool for_link, CUjit_option *ret_options,
                        void **ret_values);
