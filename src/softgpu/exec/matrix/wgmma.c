/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wgmma.mma_async: A of the warp's rows once, then D eight columns at a time. Sums are made as mma
 * makes them (matrix_multiply.c).
 */
#include "wgmma.h"

#include "fragment_registers.h"
#include "isa.h"
#include "matrix_math.h"
#include "warp.h"
#include "wgmma_memory.h"

#define COLUMNS_MAX 256
#define FACTOR_MAX (WGMMA_ROWS * WGMMA_WORDS * 4) /* elements of 8 bits and more */

static const struct wgmma_op *wgmma_op_of(const struct warp *warp, const struct insn *insn)
{
    return &warp->block->grid->program->wgmmas[insn->matrix];
}

/* This warp's rows of A. */
static bool rows_of_a(struct warp *warp, const struct insn *insn, const struct wgmma_op *op,
                      uint32_t *ret_rows)
{
    unsigned first = warp->index % WGMMA_WARPS * WGMMA_ROWS;

    if (op->a.descriptor != NO_OPERAND)
        return wgmma_rows(warp, insn, &op->a, first, WGMMA_ROWS, ret_rows);
    gather_rows(warp, &op->block, &op->block.a, place_a, WGMMA_ROWS, sizeof(*ret_rows), ret_rows);
    return true;
}

/* Eight columns of B word by word along k. */
static bool columns_of_b(struct warp *warp, const struct insn *insn, const struct wgmma_op *op,
                         unsigned first, uint32_t *ret_words)
{
    uint32_t rows[WGMMA_SIDE * WGMMA_WORDS];

    if (!wgmma_rows(warp, insn, &op->b, first, WGMMA_SIDE, rows))
        return false;
    for (unsigned word = 0; word < WGMMA_WORDS; word++)
        for (unsigned i = 0; i < WGMMA_SIDE; i++)
            ret_words[word * WGMMA_SIDE + i] = rows[i * WGMMA_WORDS + word];
    return true;
}

/* All of B is read before D changes, so a fault leaves everything as it was. */
static bool read_b(struct warp *warp, const struct insn *insn, const struct wgmma_op *op,
                   uint32_t *ret_words)
{
    for (unsigned first = 0; first < op->n; first += WGMMA_SIDE)
        if (!columns_of_b(warp, insn, op, first, ret_words + first * WGMMA_WORDS))
            return false;
    return true;
}

/* The block of D whose first column this is. */
static struct matrix_op block_at(const struct wgmma_op *op, unsigned first)
{
    struct matrix_op block = op->block;
    unsigned at = first / WGMMA_SIDE * block.d.count;

    for (unsigned i = 0; i < block.d.count; i++)
        block.d.registers[i] = block.c.registers[i] = op->registers[at + i];
    return block;
}

static bool adds_to_d(struct warp *warp, const struct wgmma_op *op)
{
    uint32_t mask = *pred(warp, op->scale);

    return ((mask >> __builtin_ctz(warp->active) & 1) != 0) != op->scale_negated;
}

/* ---- f16, bf16, tf32, fp8 ---- */

static void negate(float *values, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        values[i] = -values[i];
}

static void gather_d(struct warp *warp, const struct matrix_op *block, float *ret_sums)
{
    if (block->c.element == FRAGMENT_F16)
        gather_c_f16(warp, block, ret_sums);
    else
        gather_c_f32(warp, block, &block->c, ret_sums);
}

static void scatter_d(struct warp *warp, const struct matrix_op *block, float *sums)
{
    if (block->d.element == FRAGMENT_F16) {
        scatter_d_f16(warp, block, sums);
        return;
    }
    for (unsigned i = 0; i < WGMMA_ROWS * WGMMA_SIDE; i++)
        sums[i] = quiet(sums[i]);
    scatter_d_f32(warp, block, sums);
}

static void run_wgmma_f32(struct warp *warp, const struct insn *insn)
{
    if (!warp_converged(warp, insn, FULL_MASK))
        return;
    const struct wgmma_op *op = wgmma_op_of(warp, insn);
    uint32_t a_words[WGMMA_ROWS * WGMMA_WORDS], b_words[COLUMNS_MAX * WGMMA_WORDS];
    float a[FACTOR_MAX], b[FACTOR_MAX];
    bool adds = adds_to_d(warp, op);
    if (!rows_of_a(warp, insn, op, a_words) || !read_b(warp, insn, op, b_words))
        return;
    widen_f32(op->block.a.element, a_words, WGMMA_ROWS * op->block.k, a);
    if (op->a.negated != op->b.negated)
        negate(a, WGMMA_ROWS * op->block.k);
    for (unsigned first = 0; first < op->n; first += WGMMA_SIDE) {
        struct matrix_op block = block_at(op, first);
        float sums[WGMMA_ROWS * WGMMA_SIDE] = {0};
        if (adds)
            gather_d(warp, &block, sums);
        widen_rows_f32(block.b.element, b_words + first * WGMMA_WORDS, WGMMA_WORDS, WGMMA_SIDE, b);
        multiply_dense_f32(&block, a, b, sums);
        scatter_d(warp, &block, sums);
    }
}

/* ---- Integers ---- */

static void add_to_d(struct warp *warp, const struct matrix_op *block, bool adds, int32_t *products)
{
    int32_t before[WGMMA_ROWS * WGMMA_SIDE] = {0};
    if (adds)
        gather_c_s32(warp, block, &block->c, before);
    for (unsigned i = 0; i < WGMMA_ROWS * WGMMA_SIDE; i++)
        products[i] = block->saturates ? saturate_s32((int64_t)before[i] + products[i])
                                       : (int32_t)((uint32_t)before[i] + (uint32_t)products[i]);
    scatter_d_s32(warp, block, products);
}

static void run_wgmma_s32(struct warp *warp, const struct insn *insn)
{
    if (!warp_converged(warp, insn, FULL_MASK))
        return;
    const struct wgmma_op *op = wgmma_op_of(warp, insn);
    uint32_t a_words[WGMMA_ROWS * WGMMA_WORDS], b_words[COLUMNS_MAX * WGMMA_WORDS];
    int32_t a[FACTOR_MAX], b[FACTOR_MAX];
    bool adds = adds_to_d(warp, op);
    if (!rows_of_a(warp, insn, op, a_words) || !read_b(warp, insn, op, b_words))
        return;
    widen_s32(op->block.a.element, a_words, WGMMA_ROWS * op->block.k, a);
    for (unsigned first = 0; first < op->n; first += WGMMA_SIDE) {
        struct matrix_op block = block_at(op, first);
        int32_t products[WGMMA_ROWS * WGMMA_SIDE] = {0};
        widen_rows_s32(block.b.element, b_words + first * WGMMA_WORDS, WGMMA_WORDS, WGMMA_SIDE, b);
        multiply_dense_s32(&block, a, b, products);
        add_to_d(warp, &block, adds, products);
    }
}

/* b1: how many bits a row and a column have in common. */
static void run_wgmma_bits(struct warp *warp, const struct insn *insn)
{
    if (!warp_converged(warp, insn, FULL_MASK))
        return;
    const struct wgmma_op *op = wgmma_op_of(warp, insn);
    uint32_t a[WGMMA_ROWS * WGMMA_WORDS], b[COLUMNS_MAX * WGMMA_WORDS];
    bool adds = adds_to_d(warp, op);
    if (!rows_of_a(warp, insn, op, a) || !read_b(warp, insn, op, b))
        return;
    for (unsigned first = 0; first < op->n; first += WGMMA_SIDE) {
        struct matrix_op block = block_at(op, first);
        int32_t counts[WGMMA_ROWS * WGMMA_SIDE] = {0};
        for (unsigned at = 0; at < WGMMA_ROWS * WGMMA_SIDE; at++)
            for (unsigned word = 0; word < WGMMA_WORDS; word++)
                counts[at] += __builtin_popcount(
                    a[at / WGMMA_SIDE * WGMMA_WORDS + word] &
                    b[first * WGMMA_WORDS + word * WGMMA_SIDE + at % WGMMA_SIDE]);
        add_to_d(warp, &block, adds, counts);
    }
}

const struct wgmma_handlers ISA_NAME(wgmma_handlers) = {
    .multiply_f32 = run_wgmma_f32,
    .multiply_s32 = run_wgmma_s32,
    .multiply_bits = run_wgmma_bits,
};
