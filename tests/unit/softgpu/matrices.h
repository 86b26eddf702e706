/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of instructions on matrices: elements of every type, a problem d = a * b + c with its
 * plain solution, and kernels of one mma. Where each lane's registers belong is written down here
 * once more, as PTX describes it: element by element.
 */
#pragma once

#include "machine.h"

#define SIDE 32
#define DEPTH 256
#define LANES 32

struct element {
    const char *name;
    unsigned bits;
    unsigned exponent, mantissa; /* of a floating-point format; 0: an integer */
    bool is_signed;
};

extern const struct element f16, bf16, tf32, f32, f64, e4m3, e5m2, s8, u8, s4, u4, b1, s32;

double decode(const struct element *type, uint64_t bits);
/* Small enough that all sums are exact in f32. */
uint64_t simple(const struct element *type);
uint64_t any(const struct element *type);

struct problem {
    unsigned m, n, k;
    const struct element *a_type, *b_type, *c_type, *d_type;
    uint64_t a[SIDE][DEPTH], b[DEPTH][SIDE], c[SIDE][SIDE];
    const char *modifier; /* behind the layouts */
    const char *tail;
    bool saturates, counts_and;
    bool absent[SIDE][DEPTH]; /* of a: not multiplied with */
};

/* One that the next call forgets. */
struct problem *problem_of(unsigned m, unsigned n, unsigned k, const struct element *ab,
                           const struct element *cd);
void fill(struct problem *problem, uint64_t (*value)(const struct element *));
/* Fails the test unless these bits are d at this place. */
void expect_element(const struct problem *problem, unsigned row, unsigned column, uint64_t bits);

/* ---- A kernel of one mma ---- */

#define MMA_MEMORY 8192

struct mma {
    char opcode[128];
    unsigned counts[4]; /* registers of d, a, b, c */
    unsigned bits;      /* of each */
    char tail[32];      /* operands behind c; %e0 has what is in the fifth memory */
};

void mma_text(const struct mma *mma, char *text);
/* Memory for d, a, b, c and e, as the lanes load and store it: lane after lane. */
struct machine *mma_machine(const struct mma *mma, void *ret_memory[5]);
void mma_run(struct machine *machine, void *memory[5]);

unsigned registers(unsigned elements, const struct element *type);
/* A caller that writes parts of bytes begins with zeros. */
void put_bits(void *memory, uint64_t at, unsigned bits, uint64_t value);
uint64_t get_bits(const void *memory, uint64_t at, unsigned bits);
void append_list(char *text, char name, unsigned count);

void spread_a(const struct problem *problem, const uint64_t a[SIDE][DEPTH], unsigned depth,
              void *memory);
void spread_b(const struct problem *problem, void *memory);
void spread_c(const struct problem *problem, void *memory);
void expect_d(const struct problem *problem, const void *memory);
