/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random PTX kernels whose results the PTX ISA defines. The same seed gives the same kernel.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Raised when a seed's input changes by a change here. A change of kernels needs no new number,
 * since results are kept with a hash of their kernel's text. */
#define KERNEL_GENERATOR 1

#define KERNEL_BLOCKS 2
#define KERNEL_MAX_THREADS 96
#define KERNEL_STATE 160 /* bytes of registers that a thread loads and stores */

struct kernel {
    char *text;          /* free() */
    unsigned threads;    /* in a block */
    unsigned statements; /* at the outermost level */
    bool keeps_nans;     /* the bits of NaNs, which the ISA leaves open, are in the result */
};

/* `limit` cuts the kernel behind that many statements of the outermost level. */
struct kernel kernel_generate(uint64_t seed, unsigned limit);
/* A kernel with every arithmetic row of the opcode table in every spelling. */
struct kernel kernel_of_all_rows(void);

/* What the threads start with: their registers, and then their memory. */
void kernel_input(uint64_t seed, void *bytes, unsigned size);
/* "%r3" for the register that is at this offset of a thread's state. */
const char *kernel_register_at(unsigned offset);

/* Of the kernel's text, or of its results. */
uint64_t kernel_hash(const void *bytes, unsigned size);
