/* SPDX-License-Identifier: Apache-2.0 */
/* JIT options as they travel: pairs of u64, an option and its value. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cuda_abi.h"

#define JIT_PAIRS_MAX 32u

/* Reads the options with a numeric value from `size` bytes of pairs; other values would be pointers
 * into the client. Options that choose the target architecture are read only for a linking job.
 * Both results have a capacity of JIT_PAIRS_MAX. Returns the number of options. */
unsigned jit_pairs_read(const void *pairs, uint32_t size, bool for_link, CUjit_option *ret_options,
                        void **ret_values);
