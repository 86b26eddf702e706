/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs of kernels.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cuda_result.h"
#include "program.h"
#include "variable_addresses.h"

/* NULL on an error: *ret_result says which, and the log holds a message. */
struct program *program_build(const struct variable_addresses *variables,
                              const struct ptx_module *module, const struct ptx_function *kernel,
                              char *log, size_t log_size, CUresult *ret_result);
/*
 * Whether the kernel can be run, and what it needs: a program without code. `checked`, by function,
 * is kept from kernel to kernel, so that what many of them call is looked at once.
 */
struct program *program_check(const struct ptx_module *module, const struct ptx_function *kernel,
                              bool *checked, char *log, size_t log_size, CUresult *ret_result);
void program_destroy(struct program *program);
