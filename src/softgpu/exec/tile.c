/* SPDX-License-Identifier: Apache-2.0 */
/*
 * d = a * b + c on matrices: the lanes' registers are gathered into whole matrices, multiplied, and
 * spread again.
 *
 * The order of a GPU's sums is not specified. Here products are exact; they are added to c in f32
 * (f64 fused) in the order of A's elements, k ascending, and an f16 result is rounded once, at the
 * end. Where A is sparse, what is not there is not multiplied.
 */
#include "tile.h"

#include <string.h>

#include "exec_control.h"
#include "tile_math.h"

/* ---- Registers and matrices ---- */

typedef struct tile_place (*place_fn)(const struct tile_op *op, unsigned words, unsigned index,
                                      unsigned lane);

/* A as rows of words; B as columns of words. */
static inline void gather(struct warp *warp, const struct tile_op *op,
                          const struct fragment *fragment, place_fn place, void *ret_words)
{
    unsigned words = tile_words(fragment);
    for (unsigned i = 0; i < fragment->count; i++) {
        const unsigned char *from = reg(warp, fragment->registers[i]);
        for (unsigned lane = 0; lane < LANES; lane++) {
            struct tile_place at = place(op, words, i, lane);
            memcpy((unsigned char *)ret_words + (at.row * words + at.column) * fragment->word,
                   from + lane * fragment->word, fragment->word);
        }
    }
}

static inline float *at_f32(float *matrix, const struct tile_op *op, unsigned index, unsigned lane)
{
    struct tile_place at = place_c(op, index, lane);
    return &matrix[at.row * op->n + at.column];
}

static void gather_c_f32(struct warp *warp, const struct tile_op *op, float *ret_matrix)
{
    const struct fragment *c = &op->c;
    for (unsigned i = 0; i < c->count; i++) {
        const uint32_t *from = reg(warp, c->registers[i]);
        for (unsigned lane = 0; lane < LANES; lane++) {
            if (c->element == TILE_F32) {
                *at_f32(ret_matrix, op, i, lane) = bits_float(from[lane]);
                continue;
            }
            *at_f32(ret_matrix, op, 2 * i, lane) = from_half((uint16_t)from[lane]);
            *at_f32(ret_matrix, op, 2 * i + 1, lane) = from_half((uint16_t)(from[lane] >> 16));
        }
    }
}

static void scatter_d_f32(struct warp *warp, const struct tile_op *op, float *matrix)
{
    const struct fragment *d = &op->d;
    for (unsigned i = 0; i < d->count; i++) {
        uint32_t *to = reg(warp, d->registers[i]);
        for (unsigned lane = 0; lane < LANES; lane++) {
            to[lane] = d->element == TILE_F32
                           ? float_bits(quiet(*at_f32(matrix, op, i, lane)))
                           : pack16(to_half(*at_f32(matrix, op, 2 * i, lane)),
                                    to_half(*at_f32(matrix, op, 2 * i + 1, lane)));
        }
    }
}

/* ---- Multiplying ---- */

/* NULL where A has all its elements. */
static const uint8_t *choose(struct warp *warp, const struct tile_op *op, uint8_t *chosen)
{
    if (!op->is_sparse)
        return NULL;
    tile_choose(warp, op, chosen);
    return chosen;
}

static void run_multiply_f32(struct warp *warp, const struct insn *insn)
{
    if (!warp_converged(warp, insn, FULL_MASK))
        return;
    const struct tile_op *op = tile_op_of(warp, insn);
    uint32_t words[TILE_MAX_SIDE * TILE_MAX_WORDS];
    uint8_t chosen[TILE_MAX_FACTOR];
    float a[TILE_MAX_FACTOR], columns[TILE_MAX_FACTOR], b[TILE_MAX_FACTOR];
    float c[TILE_MAX_SIDE * TILE_MAX_SIDE];
    gather(warp, op, &op->a, place_a, words);
    widen_f32(op->a.element, words, op->m * op->a.depth, a);
    gather(warp, op, &op->b, place_b, words);
    widen_f32(op->b.element, words, op->n * op->k, columns);
    transpose_float(columns, op->n, op->k, b);
    gather_c_f32(warp, op, c);
    multiply_f32(op, a, b, choose(warp, op, chosen), c);
    scatter_d_f32(warp, op, c);
}

static void run_multiply_f64(struct warp *warp, const struct insn *insn)
{
    if (!warp_converged(warp, insn, FULL_MASK))
        return;
    const struct tile_op *op = tile_op_of(warp, insn);
    double a[TILE_MAX_SIDE * TILE_MAX_WORDS], columns[TILE_MAX_SIDE * TILE_MAX_WORDS];
    double b[TILE_MAX_SIDE * TILE_MAX_WORDS], c[TILE_MAX_SIDE * TILE_MAX_SIDE];
    gather(warp, op, &op->a, place_a, a);
    gather(warp, op, &op->b, place_b, columns);
    transpose_double(columns, op->n, op->k, b);
    for (unsigned i = 0; i < op->c.count; i++) {
        const double *from = reg(warp, op->c.registers[i]);
        for (unsigned lane = 0; lane < LANES; lane++) {
            struct tile_place at = place_c(op, i, lane);
            c[at.row * op->n + at.column] = from[lane];
        }
    }
    multiply_f64(op, a, b, NULL, c);
    for (unsigned i = 0; i < op->d.count; i++) {
        double *to = reg(warp, op->d.registers[i]);
        for (unsigned lane = 0; lane < LANES; lane++) {
            struct tile_place at = place_c(op, i, lane);
            to[lane] = c[at.row * op->n + at.column];
        }
    }
}

/* Products alone cannot overflow; with c the sum wraps or stops at the end of the range. */
static void add_c_s32(struct warp *warp, const struct tile_op *op, const int32_t *products)
{
    for (unsigned i = 0; i < op->d.count; i++) {
        const int32_t *from = reg(warp, op->c.registers[i]);
        int32_t *to = reg(warp, op->d.registers[i]);
        for (unsigned lane = 0; lane < LANES; lane++) {
            struct tile_place at = place_c(op, i, lane);
            int64_t sum = (int64_t)from[lane] + products[at.row * op->n + at.column];
            to[lane] = op->saturates ? saturate_s32(sum) : (int32_t)sum;
        }
    }
}

static void run_multiply_s32(struct warp *warp, const struct insn *insn)
{
    if (!warp_converged(warp, insn, FULL_MASK))
        return;
    const struct tile_op *op = tile_op_of(warp, insn);
    uint32_t words[TILE_MAX_SIDE * TILE_MAX_WORDS];
    uint8_t chosen[TILE_MAX_FACTOR];
    int32_t a[TILE_MAX_FACTOR], columns[TILE_MAX_FACTOR], b[TILE_MAX_FACTOR];
    int32_t products[TILE_MAX_SIDE * TILE_MAX_SIDE] = {0};
    gather(warp, op, &op->a, place_a, words);
    widen_s32(op->a.element, words, op->m * op->a.depth, a);
    gather(warp, op, &op->b, place_b, words);
    widen_s32(op->b.element, words, op->n * op->k, columns);
    transpose_int32_t(columns, op->n, op->k, b);
    multiply_s32(op, a, b, choose(warp, op, chosen), products);
    add_c_s32(warp, op, products);
}

/* b1: how many bits two rows have in common, or apart. */
static void run_multiply_bits(struct warp *warp, const struct insn *insn)
{
    if (!warp_converged(warp, insn, FULL_MASK))
        return;
    const struct tile_op *op = tile_op_of(warp, insn);
    uint32_t a[TILE_MAX_SIDE * TILE_MAX_WORDS], b[TILE_MAX_SIDE * TILE_MAX_WORDS];
    int32_t counts[TILE_MAX_SIDE * TILE_MAX_SIDE] = {0};
    unsigned words = tile_words(&op->a);
    gather(warp, op, &op->a, place_a, a);
    gather(warp, op, &op->b, place_b, b);
    for (unsigned at = 0; at < (unsigned)op->m * op->n; at++) {
        const uint32_t *row = &a[at / op->n * words], *column = &b[at % op->n * words];
        for (unsigned i = 0; i < words; i++)
            counts[at] +=
                __builtin_popcount(op->counts_and ? row[i] & column[i] : row[i] ^ column[i]);
    }
    add_c_s32(warp, op, counts);
}

const struct tile_handlers LANE_NAME(tile_handlers) = {
    .multiply_f32 = run_multiply_f32,
    .multiply_f64 = run_multiply_f64,
    .multiply_s32 = run_multiply_s32,
    .multiply_bits = run_multiply_bits,
};
