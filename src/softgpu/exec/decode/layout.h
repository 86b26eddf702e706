/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layout of the registers, variables and parameters of functions. Offsets and sizes are bytes.
 * Arrays belong to the builder, which frees them. The thread that builds calls the functions.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ptx.h"

struct builder;

/* The layout of a function. */
struct layout {
    uint32_t *registers; /* offsets in the register file */
    bool *fixed; /* by register: it is a constant's or a special one's, see fixed_registers.h */
    uint32_t *variables; /* .local and .param: offsets in the frame; .shared: in shared memory */
    uint32_t
        *params; /* of a function: offsets in its frame; of an entry: in the parameter buffer */
    uint32_t *returns;
    uint32_t window; /* registers: first 64-bit ones, then 32-bit ones, then predicates */
    uint32_t wide_count;
    uint32_t narrow_count;
    uint32_t predicate_count;
    uint32_t save; /* offset in the frame */
    uint32_t mark; /* offset in the frame of the saved stack size; see stack.c */
    bool allocates;
    uint32_t frame;
    bool reached;
    bool on_path; /* being walked: meeting it again is recursion */
    bool done;
    uint32_t deepest; /* bytes of local memory with all it calls */
};

/* Lays out the kernel and all functions that it may call, callees first. False: the builder has
 * failed, with CUDA_ERROR_OUT_OF_MEMORY, or CUDA_ERROR_INVALID_PTX for an oversized layout. */
bool layout_program(struct builder *builder);
/* Places consecutive parameters from `start` on. Returns the end of the last one. ret_offsets has a
 * capacity of `count`, or is NULL. Sizes beyond the limit of a frame are clamped, and refused
 * later. */
uint32_t layout_params(struct ptx_symbol *const *params, uint32_t count, uint32_t start,
                       uint32_t *ret_offsets);
uint32_t kernel_params_size(const struct ptx_function *kernel);
/* Of a function of the builder's module; never NULL. */
struct layout *layout_of(struct builder *builder, const struct ptx_function *function);
