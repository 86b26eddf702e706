/* SPDX-License-Identifier: Apache-2.0 */
/*
 * d = a * b + c on matrices: the lanes' registers are gathered into whole matrices, multiplied, and
 * spread again.
 *
 * The order of a GPU's sums is not specified. Here products are exact. They are added to c in f32
 * (f64 fused) in the order of A's elements, k ascending. An f16 result is rounded once, at the end.
 * Where A is sparse, what is not there is not multiplied.
 */
#include "fragment_registers.h"
#include "isa.h"
#include "matrix_math.h"
#include "warp.h"
#ifdef __AVX512F__
#include "multiply_f64.h"
#endif

/* ---- Multiplying ---- */

static void sums_f32(struct warp *warp, const struct matrix_op *op, const float *a, const float *b,
                     float *c)
{
    uint8_t chosen[FRAGMENT_MAX_FACTOR];
    if (!op->is_sparse) {
        multiply_dense_f32(op, a, b, c);
        return;
    }
    matrix_sparse_rows(warp, op, chosen);
    multiply_sparse_f32(op, a, b, chosen, c);
}

static void quiet_all(float *matrix, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        matrix[i] = quiet(matrix[i]);
}

static void run_multiply_f32(struct warp *warp, const struct insn *insn)
{
    if (!warp_converged(warp, insn, FULL_MASK))
        return;
    const struct matrix_op *op = matrix_op_of(warp, insn);
    uint32_t words[FRAGMENT_MAX_SIDE * FRAGMENT_MAX_WORDS];
    float a[FRAGMENT_MAX_FACTOR], b[FRAGMENT_MAX_FACTOR], c[FRAGMENT_MAX_SIDE * FRAGMENT_MAX_SIDE];
    gather_rows(warp, op, &op->a, place_a, op->m, sizeof(*words), words);
    widen_f32(op->a.element, words, op->m * op->a.depth, a);
    gather_b_b32(warp, op, words);
    widen_rows_f32(op->b.element, words, fragment_words(&op->b), op->n, b);
    if (op->c.element == FRAGMENT_F16)
        gather_c_f16(warp, op, c);
    else
        gather_c_f32(warp, op, &op->c, c);
    sums_f32(warp, op, a, b, c);
    if (op->d.element == FRAGMENT_F16) {
        scatter_d_f16(warp, op, c);
        return;
    }
    quiet_all(c, op->m * op->n);
    scatter_d_f32(warp, op, c);
}

#ifndef __AVX512F__
static void multiply_registers_f64(struct warp *warp, const struct matrix_op *op)
{
    double a[FRAGMENT_MAX_SIDE * FRAGMENT_MAX_WORDS], b[FRAGMENT_MAX_SIDE * FRAGMENT_MAX_WORDS];
    double c[FRAGMENT_MAX_SIDE * FRAGMENT_MAX_SIDE];
    gather_rows(warp, op, &op->a, place_a, op->m, sizeof(*a), a);
    gather_b_b64(warp, op, (uint64_t *)b);
    gather_c_f64(warp, op, &op->c, c);
    multiply_dense_f64(op, a, b, c);
    scatter_d_f64(warp, op, c);
}
#endif

static void run_multiply_f64(struct warp *warp, const struct insn *insn)
{
    if (warp_converged(warp, insn, FULL_MASK))
        multiply_registers_f64(warp, matrix_op_of(warp, insn));
}

/* Products alone cannot overflow; with c the sum wraps or stops at the end of the range. */
static void add_c_s32(struct warp *warp, const struct matrix_op *op, int32_t *products)
{
    int32_t c[FRAGMENT_MAX_SIDE * FRAGMENT_MAX_SIDE];
    unsigned count = op->m * op->n;
    gather_c_s32(warp, op, &op->c, c);
    if (op->saturates) {
        for (unsigned i = 0; i < count; i++)
            products[i] = saturate_s32((int64_t)c[i] + products[i]);
    } else {
        for (unsigned i = 0; i < count; i++)
            products[i] += c[i];
    }
    scatter_d_s32(warp, op, products);
}

static void run_multiply_s32(struct warp *warp, const struct insn *insn)
{
    if (!warp_converged(warp, insn, FULL_MASK))
        return;
    const struct matrix_op *op = matrix_op_of(warp, insn);
    uint32_t words[FRAGMENT_MAX_SIDE * FRAGMENT_MAX_WORDS];
    uint8_t chosen[FRAGMENT_MAX_FACTOR];
    int32_t a[FRAGMENT_MAX_FACTOR], b[FRAGMENT_MAX_FACTOR];
    int32_t products[FRAGMENT_MAX_SIDE * FRAGMENT_MAX_SIDE] = {0};
    gather_rows(warp, op, &op->a, place_a, op->m, sizeof(*words), words);
    widen_s32(op->a.element, words, op->m * op->a.depth, a);
    gather_b_b32(warp, op, words);
    widen_rows_s32(op->b.element, words, fragment_words(&op->b), op->n, b);
    if (op->is_sparse) {
        matrix_sparse_rows(warp, op, chosen);
        multiply_sparse_s32(op, a, b, chosen, products);
    } else {
        multiply_dense_s32(op, a, b, products);
    }
    add_c_s32(warp, op, products);
}

/* b1: how many bits two rows have in common, or apart. */
static void run_multiply_bits(struct warp *warp, const struct insn *insn)
{
    if (!warp_converged(warp, insn, FULL_MASK))
        return;
    const struct matrix_op *op = matrix_op_of(warp, insn);
    uint32_t a[FRAGMENT_MAX_SIDE * FRAGMENT_MAX_WORDS], b[FRAGMENT_MAX_SIDE * FRAGMENT_MAX_WORDS];
    int32_t counts[FRAGMENT_MAX_SIDE * FRAGMENT_MAX_SIDE] = {0};
    unsigned words = fragment_words(&op->a);
    gather_rows(warp, op, &op->a, place_a, op->m, sizeof(*a), a);
    gather_rows(warp, op, &op->b, place_b, op->n, sizeof(*b), b);
    for (unsigned at = 0; at < (unsigned)op->m * op->n; at++) {
        const uint32_t *row = &a[at / op->n * words], *column = &b[at % op->n * words];
        for (unsigned i = 0; i < words; i++)
            counts[at] +=
                __builtin_popcount(op->counts_and ? row[i] & column[i] : row[i] ^ column[i]);
    }
    add_c_s32(warp, op, counts);
}

const struct matrix_handlers ISA_NAME(matrix_handlers) = {
    .multiply_f32 = run_multiply_f32,
    .multiply_f64 = run_multiply_f64,
    .multiply_s32 = run_multiply_s32,
    .multiply_bits = run_multiply_bits,
};
