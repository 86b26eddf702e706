/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A decoded instruction: the handler that runs it, and where its operands are.
 *
 * A register is a vector of 32 lanes in the warp's register file. A lane has 4 bytes for everything
 * up to 32 bits, and 8 for 64 bits; a predicate is one 32-bit mask. Constants and special registers
 * (%tid.x, ...) are registers as well, filled when the warp starts. So every operand of every
 * instruction is an offset into the file. Bits above a register's own width are undefined: a
 * handler that reads them narrows the value first.
 */
#pragma once

#include <stdint.h>

#include "ptx.h"

#define REGISTER_ALIGN 64

struct warp;
struct insn;
typedef void (*handler_fn)(struct warp *warp, const struct insn *insn);
/* The same in several warps at once, all of whose lanes are active or dead. */
typedef void (*team_handler_fn)(struct warp *const *team, unsigned count, const struct insn *insn);

/* One cache line. Offsets count bytes of the register file. */
struct insn {
    handler_fn run;
    union {
        handler_fn inner;        /* what a guard wraps */
        team_handler_fn in_team; /* of INSN_IN_TEAM */
    };
    uint32_t d;
    uint32_t a;
    union {
        uint32_t b;
        uint32_t matrix; /* of an instruction on matrices: which of the program's */
    };
    uint32_t c;
    union {
        uint64_t imm;
        handler_fn fp_inner; /* what a floating-point environment wraps */
    };
    uint32_t guard; /* a predicate; bit 0 set: negated */
    uint32_t p;     /* a predicate or a second destination */
    uint32_t line;
    uint8_t space; /* enum ptx_space */
    uint8_t width; /* elements of a vector access */
    uint8_t mode;  /* a boolean operator, a floating-point environment, a kind of shuffle ... */
    uint8_t flags;
    uint8_t environment; /* rounding and flushing, where a floating-point environment is wrapped
                            around */
    uint8_t run_length;  /* of the straight-line run that begins here: instructions that only
                            compute or load, with no jump to any but the first */
};

#define NO_OPERAND UINT32_MAX

/* insn.environment: 0 to 3 to nearest, to zero, down, up; and whether subnormals are flushed. */
#define FP_FLUSH 4

/* Function pointers: no memory is there, so they cannot be mistaken for data. */
#define FUNCTION_BASE 0xf000000000000000u
#define FUNCTION_STEP 16

static inline uint64_t function_pointer(uint32_t index)
{
    return FUNCTION_BASE + (uint64_t)index * FUNCTION_STEP;
}

/* The function's index in its module; anything else gives a number that is out of range. */
static inline uint64_t function_index(uint64_t pointer)
{
    uint64_t distance = pointer - FUNCTION_BASE;
    return distance % FUNCTION_STEP == 0 ? distance / FUNCTION_STEP : UINT64_MAX;
}

/* insn.flags of memory accesses and comparisons */
enum {
    INSN_WIDE_ADDRESS = 1, /* the base register has 64 bits */
    INSN_SYNCHRONIZES = 2, /* volatile, relaxed, acquire, release: one access a lane, never torn */
    INSN_FENCE_BEFORE = 4,
    INSN_NEGATE_C = 8, /* the predicate c is negated */
};

/* insn.flags of every instruction */
enum {
    INSN_IN_TEAM = 32,  /* has a handler for several warps at once */
    INSN_COMPUTES = 64, /* changes registers only: it cannot jump or wait. A load may fault: what
                           follows in its run then changes registers in vain */
    INSN_TARGET = 128,  /* of a jump */
};
