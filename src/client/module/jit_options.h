/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a JIT compilation that come with an image. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cuda_abi.h"

/* The program's buffer for the compiler's log, as the JIT options of a call name it. */
struct jit_log {
    char *text;
    unsigned capacity;
    unsigned *ret_size; /* where the option's value is to be replaced by the size */
};

struct jit_options {
    struct jit_log info, error;
    void **wall_time;   /* the option's value, to be replaced by a float of milliseconds; or NULL */
    bool names_symbols; /* addresses of the program are to be put into the code */
    uint32_t size;
    unsigned char pairs[512];
};

/* Sorts options into those that are sent with the image and those that name buffers of the program.
 * CUDA_ERROR_INVALID_VALUE when an array is missing. Options are left out when `pairs` is full. */
CUresult jit_options_read(struct jit_options *options, unsigned count, CUjit_option *names,
                          void **values);

/* Writes the compiler's log to the program's buffer, if the options name one. `size` is in
 * bytes, without a NUL. */
void jit_log_write(const struct jit_log *log, const char *text, uint32_t size);

/* Replaces the value of CU_JIT_WALL_TIME, if the options have that. */
void jit_wall_time_write(const struct jit_options *options, float milliseconds);
