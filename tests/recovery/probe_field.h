/* SPDX-License-Identifier: Apache-2.0 */
/* Fields: words in device memory that a kernel changes, and what they should be. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cuda_abi.h"

struct field {
    CUdeviceptr device;
    uint32_t *expected, *seen;
    uint32_t count;
    CUstream stream;
    CUevent done;
};

/* The kernel that changes fields: data[i] = data[i] * 3 + add, in every 32nd word. */
void field_use_kernel(CUfunction step);

/* A number that was not used before. */
uint32_t field_next_number(void);

/* Allocates and fills a field, with a stream and an event. */
CUresult field_make(struct field *field, uint32_t bytes);

/* What the kernel will have done. */
void field_expect(struct field *field, uint32_t add);

/* Launches the kernel in the field's stream, and expects what it does. */
CUresult field_launch(struct field *field, uint32_t add);

/* The same with the next number. */
CUresult field_step(struct field *field);

/* Whether the field holds what is expected. */
CUresult field_check(struct field *field, bool *ret_right);
