/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies between global and shared memory that a tensor map describes, see tensor_copy.c.
 */
#pragma once

#include "warp_state.h"

/* insn.mode; of a reduction the operation is added. */
enum tensor_copy_mode {
    TENSOR_LOAD,
    TENSOR_STORE,
    TENSOR_REDUCE,
};

/*
 * There are five insns. The first has the address in shared memory, p: whether a barrier is told,
 * c: a mask of blocks, or none. It has width: the rank, and flags: TENSOR_COPY_IM2COL as well. The
 * nops behind it carry the map's address and the barrier's. In d, b, c and p of the next two is
 * what tensor_copy_slot says.
 */
void run_tensor_copy(struct warp *warp, const struct insn *insn);

/* insn.flags: the opcode says im2col, and the map has to say so, too. */
enum { TENSOR_COPY_IM2COL = 16 };

#define TENSOR_COPY_SLOTS 8 /* coordinates 0 to 4, offsets 5 to 7; NO_OPERAND: there is none */
