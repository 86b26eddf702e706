/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs of kernels. Any thread may build; nothing is shared but the module, which is only
 * read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cuda_result.h"
#include "program.h"
#include "variable_addresses.h"

/* NULL on an error: *ret_result is CUDA_ERROR_INVALID_PTX, _NOT_SUPPORTED or _OUT_OF_MEMORY, and
 * the log, of log_size bytes or none, has a message. The caller destroys the program. */
struct program *program_build(const struct variable_addresses *variables,
                              const struct ptx_module *module, const struct ptx_function *kernel,
                              char *log, size_t log_size, CUresult *ret_result);
/*
 * Checks that the kernel can run, and collects its needs: a program without code. `checked`, by
 * function, is kept from kernel to kernel, so that shared callees are checked once.
 */
struct program *program_check(const struct ptx_module *module, const struct ptx_function *kernel,
                              bool *checked, char *log, size_t log_size, CUresult *ret_result);
/* Nothing may run it any more; NULL is allowed. */
void program_destroy(struct program *program);
