/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrices in the registers of a warp's lanes, and the position of each register's elements.
 *
 * All of mma's layouts are one, if a matrix is seen as words of 32 bits (64 for f64) along k. A
 * quad of lanes holds one row of four words, and eight quads hold eight rows. Further registers
 * hold the blocks of 8 rows and 4 words beside and below. What a lane holds of the accumulator are
 * pairs of neighbors in a row. The layout of wmma is open; ours is that of mma, block by block.
 *
 * All lanes of the warp take part, as PTX demands; registers of lanes that do not are read all the
 * same. Handlers compute in memory of their own stack, and the host thread that runs the warp's
 * block calls them. Those that access memory fault as loads and stores do, before they have changed
 * anything.
 */
#pragma once

#include "block_state.h"

#define FRAGMENT_REGISTERS 8
#define FRAGMENT_MAX_SIDE 32
#define FRAGMENT_MAX_WORDS 16    /* along k */
#define FRAGMENT_MAX_FACTOR 1024 /* elements of A or of B */

enum fragment_element {
    FRAGMENT_F16,
    FRAGMENT_BF16,
    FRAGMENT_TF32,
    FRAGMENT_E4M3,
    FRAGMENT_E5M2,
    FRAGMENT_F32,
    FRAGMENT_F64,
    FRAGMENT_S8,
    FRAGMENT_U8,
    FRAGMENT_S4,
    FRAGMENT_U4,
    FRAGMENT_B1,
    FRAGMENT_S32,
    FRAGMENT_ELEMENT_COUNT,
};

enum fragment_use {
    FRAGMENT_A,
    FRAGMENT_B,
    FRAGMENT_ACCUMULATOR,
};

/* The registers of one matrix. */
struct fragment {
    enum fragment_element element;
    uint8_t bits; /* of an element */
    uint8_t word; /* bytes of a register: 4 or 8 */
    uint8_t count;
    bool across;    /* of mma.m8n8k4: a lane holds elements of one k, not neighbors along k */
    uint16_t depth; /* elements along k: half of them where A is sparse */
    uint32_t registers[FRAGMENT_REGISTERS];
};

/* An instruction on matrices; insn.matrix is its number in the program. */
struct matrix_op {
    uint8_t m;
    uint8_t n;
    uint16_t k;
    bool saturates;        /* .satfinite */
    bool counts_and;       /* of bits: and.popc, else xor.popc */
    enum fragment_use use; /* of what wmma loads and stores */
    bool column_major;     /* how it lies in memory */
    uint32_t stride;       /* a register that says how far rows are apart; or NO_OPERAND */
    bool in_quads;         /* mma.m8n8k4 of f16: four products at once */
    bool is_sparse;        /* A: half of its elements are there, and metadata says which */
    uint8_t teller;        /* the first lane of each four that has metadata */
    uint32_t metadata;     /* a register */
    struct fragment d;     /* also what is loaded and stored */
    struct fragment a, b, c;
};

struct fragment_place {
    unsigned row;
    unsigned column;
};

/* Lanes that hold neighboring words of one row, or pairs of neighbors; the next quad holds the
 * next row. So where lane 0's part of a register is says where that of all others is. */
#define QUAD 4
#define QUADS (LANES / QUAD)

static inline const struct matrix_op *matrix_op_of(const struct warp *warp, const struct insn *insn)
{
    return &warp->block->grid->program->matrices[insn->matrix];
}

/* Words along k. */
static inline unsigned fragment_words(const struct fragment *fragment)
{
    return fragment->depth * fragment->bits / (8 * fragment->word);
}

/* Of A: the row, and the word of it. Registers beyond the matrix hold it once more. */
static inline struct fragment_place place_a(const struct matrix_op *op, unsigned words,
                                            unsigned index, unsigned lane)
{
    unsigned blocks = words / 4;
    unsigned pair = op->m >= 16 ? 2 : 1;
    unsigned upper = index % pair;
    unsigned block = index / pair % blocks;
    unsigned lower = index / pair / blocks % (op->m > 16 ? 2 : 1);
    return (struct fragment_place){.row = lane / 4 + 8 * upper + 16 * lower,
                                   .column = lane % 4 + 4 * block};
}

/* Of B: the column, as .row, and the word of it along k. */
static inline struct fragment_place place_b(const struct matrix_op *op, unsigned words,
                                            unsigned index, unsigned lane)
{
    unsigned blocks = words / 4;
    unsigned beside = index / blocks % (op->n / 8);
    return (struct fragment_place){.row = lane / 4 + 8 * beside,
                                   .column = lane % 4 + 4 * (index % blocks)};
}

/* Of C and D, element by element: a register may hold two. */
static inline struct fragment_place place_c(const struct matrix_op *op, unsigned index,
                                            unsigned lane)
{
    unsigned pair = op->m >= 16 ? 2 : 1;
    unsigned rest = index / 2;
    unsigned upper = rest % pair;
    unsigned beside = rest / pair % (op->n / 8);
    unsigned lower = rest / pair / (op->n / 8);
    return (struct fragment_place){.row = lane / 4 + 8 * upper + 16 * lower,
                                   .column = 2 * (lane % 4) + index % 2 + 8 * beside};
}

/* ---- matrix_multiply.c, for each ISA variant ---- */
/* D = A * B + C of insn.matrix, from registers to registers. They cannot fault. */
struct matrix_handlers {
    handler_fn multiply_f32; /* f16, bf16, tf32, fp8 into f32 or f16 */
    handler_fn multiply_f64;
    handler_fn multiply_s32;
    handler_fn multiply_bits;
};
extern const struct matrix_handlers matrix_handlers_base;
extern const struct matrix_handlers matrix_handlers_v3;
extern const struct matrix_handlers matrix_handlers_v4;
/* Of the best variant that runs here. Any thread may call it. */
const struct matrix_handlers *matrix_handlers(void);

/* ---- matrix_sparse.c ---- */
/* The row of B for each element of a sparse A, row by row. The capacity of ret_chosen is op->m *
 * op->a.depth, at most FRAGMENT_MAX_FACTOR. No value exceeds 2 * op->a.depth - 1. */
void matrix_sparse_rows(struct warp *warp, const struct matrix_op *op, uint8_t *ret_chosen);

/* ---- matrix_quads.c: mma.m8n8k4 of f16 ---- */
void run_multiply_quads(struct warp *warp, const struct insn *insn);

/* ---- fragment_memory.c, for each ISA variant ---- */
/* wmma.load and .store, ldmatrix and stmatrix: CUDA_ERROR_ILLEGAL_ADDRESS or
 * CUDA_ERROR_MISALIGNED_ADDRESS of the lane whose row it is. movmatrix: in registers alone. */
struct fragment_handlers {
    handler_fn load;
    handler_fn store;
    handler_fn load_matrices;
    handler_fn store_matrices;
    handler_fn transpose_matrix;
};
extern const struct fragment_handlers fragment_handlers_base;
extern const struct fragment_handlers fragment_handlers_v3;
extern const struct fragment_handlers fragment_handlers_v4;
/* Of the best variant that runs here. Any thread may call it. */
const struct fragment_handlers *fragment_handlers(void);
