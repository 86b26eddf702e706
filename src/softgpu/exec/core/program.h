/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program: the instructions of a kernel and of every function that it can reach. It is immutable
 * once it is built, and any thread may run it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "insn.h"

/* A special register of a program, filled when a warp starts. */
struct special_use {
    uint16_t special;
    uint32_t offset;
};

struct constant {
    uint32_t offset;
    bool is_wide;
    uint64_t bits;
};

/* A register that holds a parameter of the kernel for as long as the grid runs. */
struct param_register {
    uint32_t offset; /* of its row */
    bool is_wide;
    uint32_t at; /* in the parameter buffer */
};

struct program_function {
    uint32_t start; /* instruction */
    uint32_t frame; /* bytes of local memory */
    bool may_be_called;
};

/* A kernel ready to run: its code and that of every function it can reach. */
struct program {
    struct insn *code;
    uint32_t code_count;
    uint32_t entry;
    uint32_t file_size;     /* bytes of a warp's register file */
    uint32_t stack_pointer; /* offset of the lanes that hold it */
    uint32_t
        stack_limits; /* offset of the lanes that hold where alloca's memory begins; 0: no alloca */
    struct special_use *specials;
    uint32_t special_count;
    struct constant *constants;
    uint32_t constant_count;
    struct param_register *params;
    uint32_t param_count;
    struct program_function *functions; /* by index in the module */
    uint32_t function_count;
    struct matrix_op *matrices; /* operands of instructions on matrices */
    uint32_t matrix_count;
    struct wgmma_op *wgmmas; /* and those on matrices of a warpgroup */
    uint32_t wgmma_count;
    uint32_t local_size; /* bytes a thread when nothing recurses */
    uint32_t static_shared;
    uint32_t dynamic_shared_start;
    bool calls;         /* some function, so the stack pointer moves */
    bool recursive;     /* or calls through pointers */
    bool uses_reserved; /* the shared memory that is the system's, where cooperative groups meet */
    const char *name;
};
