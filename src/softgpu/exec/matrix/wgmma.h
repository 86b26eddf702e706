/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wgmma: a warpgroup, four warps, multiplies 64 rows of A with B, which lies in shared memory, as A
 * may, too. Each warp computes its own 16 rows at once when it comes to the instruction; what makes
 * the four wait for each other is wgmma.wait_group.
 *
 * A descriptor that means nothing here, or leads outside of shared memory, is a fault. The host
 * thread that runs the warp's block calls the handlers.
 */
#pragma once

#include "fragment.h"

#define WGMMA_REGISTERS 128
#define WGMMA_WARPS 4
#define WGMMA_ROWS 16 /* of A and D, of a warp */
#define WGMMA_SIDE 8  /* columns that are multiplied together */
#define WGMMA_WORDS 8 /* of 32 bits along k: all types have as many */

struct wgmma_operand {
    uint32_t descriptor; /* a register of 64 bits, or NO_OPERAND: A is in registers */
    bool across;         /* transposed: neighbors in memory are neighbors along M or N */
    bool negated;
};

/* insn.matrix is its number in the program's list. */
struct wgmma_op {
    struct matrix_op block; /* of 16 rows and 8 columns; a: the registers, if A is there */
    struct wgmma_operand a, b;
    uint16_t n;
    uint32_t scale; /* a predicate: whether the products are added to D */
    bool scale_negated;
    uint32_t registers[WGMMA_REGISTERS]; /* of D */
};

/* Compiled for each ISA variant, see wgmma.c. */
struct wgmma_handlers {
    handler_fn multiply_f32;
    handler_fn multiply_s32;
    handler_fn multiply_bits;
};
extern const struct wgmma_handlers wgmma_handlers_base;
extern const struct wgmma_handlers wgmma_handlers_v3;
extern const struct wgmma_handlers wgmma_handlers_v4;
/* Any thread may call it. */
const struct wgmma_handlers *wgmma_handlers(void);
