/* SPDX-License-Identifier: Apache-2.0 */
/*
 * d = a * b + c on matrices: the lanes' registers are gathered into whole matrices, multiplied, and
 * spread again.
 *
 * The order of a GPU's sums is not specified. Here products are exact; they are added to c in f32
 * (f64 fused) in the order of A's elements, k ascending, and an f16 result is rounded once, at the
 * end. Where A is sparse, what is not there is not multiplied.
 */
#include <string.h>

#include "isa.h"
#include "matrix_math.h"
#include "warp.h"

/* ---- Registers and matrices ---- */

typedef struct fragment_place (*place_fn)(const struct matrix_op *op, unsigned words,
                                          unsigned index, unsigned lane);

/* Without those registers that hold parts of a matrix once more. */
static inline unsigned distinct_registers(const struct fragment *fragment, unsigned side)
{
    return side * fragment_words(fragment) / LANES;
}

/* As rows of words along k: of A, and of B its columns. */
static inline void gather_rows(struct warp *warp, const struct matrix_op *op,
                               const struct fragment *fragment, place_fn place, unsigned side,
                               unsigned word, void *ret_words)
{
    unsigned words = fragment_words(fragment);
    for (unsigned i = 0; i < distinct_registers(fragment, side); i++) {
        const unsigned char *from = reg(warp, fragment->registers[i]);
        struct fragment_place first = place(op, words, i, 0);
        unsigned char *to = (unsigned char *)ret_words + (first.row * words + first.column) * word;
        for (unsigned quad = 0; quad < QUADS; quad++)
            memcpy(to + quad * words * word, from + QUAD * quad * word, QUAD * word);
    }
}

/* B word by word along k, each with those of its neighbors in a row: the columns side by side. */
#define GATHER_B(bits)                                                                 \
    static inline void gather_b_b##bits(struct warp *warp, const struct matrix_op *op, \
                                        uint##bits##_t *ret_words)                     \
    {                                                                                  \
        unsigned words = fragment_words(&op->b);                                       \
        for (unsigned i = 0; i < distinct_registers(&op->b, op->n); i++) {             \
            const uint##bits##_t *from = reg(warp, op->b.registers[i]);                \
            struct fragment_place first = place_b(op, words, i, 0);                    \
            uint##bits##_t *to = ret_words + first.column * op->n + first.row;         \
            for (unsigned along = 0; along < QUAD; along++, to += op->n) {             \
                for (unsigned quad = 0; quad < QUADS; quad++)                          \
                    to[quad] = from[QUAD * quad + along];                              \
            }                                                                          \
        }                                                                              \
    }
GATHER_B(32)
GATHER_B(64)
#undef GATHER_B

/* Where the first quad's elements of C and D begin that are in this register and, if they are as
 * wide as one, in the next: 8 neighbors in a row. The other quads' are in the rows below. */
static inline unsigned first_of_c(const struct matrix_op *op, unsigned index)
{
    struct fragment_place at = place_c(op, index, 0);
    return at.row * op->n + at.column;
}

/* Each lane of a quad holds two neighbors, in two registers. */
#define SPREAD_C(name, type)                                                                      \
    static inline void gather_c_##name(struct warp *warp, const struct matrix_op *op,             \
                                       const struct fragment *c, type *ret_matrix)                \
    {                                                                                             \
        for (unsigned i = 0; i < c->count; i += 2) {                                              \
            unsigned first = first_of_c(op, i);                                                   \
            const type *even = reg(warp, c->registers[i]), *odd = reg(warp, c->registers[i + 1]); \
            for (unsigned quad = 0; quad < QUADS; quad++) {                                       \
                type *to = ret_matrix + first + quad * op->n;                                     \
                for (unsigned lane = 0; lane < QUAD; lane++) {                                    \
                    to[2 * lane] = even[QUAD * quad + lane];                                      \
                    to[2 * lane + 1] = odd[QUAD * quad + lane];                                   \
                }                                                                                 \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
    static inline void scatter_d_##name(struct warp *warp, const struct matrix_op *op,            \
                                        const type *matrix)                                       \
    {                                                                                             \
        const struct fragment *d = &op->d;                                                        \
        for (unsigned i = 0; i < d->count; i += 2) {                                              \
            unsigned first = first_of_c(op, i);                                                   \
            type *even = reg(warp, d->registers[i]), *odd = reg(warp, d->registers[i + 1]);       \
            for (unsigned quad = 0; quad < QUADS; quad++) {                                       \
                const type *from = matrix + first + quad * op->n;                                 \
                for (unsigned lane = 0; lane < QUAD; lane++) {                                    \
                    even[QUAD * quad + lane] = from[2 * lane];                                    \
                    odd[QUAD * quad + lane] = from[2 * lane + 1];                                 \
                }                                                                                 \
            }                                                                                     \
        }                                                                                         \
    }
SPREAD_C(f32, float)
SPREAD_C(f64, double)
SPREAD_C(s32, int32_t)
#undef SPREAD_C

/* Of f16 a register holds both neighbors. */
static inline void gather_c_f16(struct warp *warp, const struct matrix_op *op, float *ret_matrix)
{
    for (unsigned i = 0; i < op->c.count; i++) {
        unsigned first = first_of_c(op, 2 * i);
        const uint16_t *from = reg(warp, op->c.registers[i]);
        for (unsigned quad = 0; quad < QUADS; quad++) {
            float *to = ret_matrix + first + quad * op->n;
            for (unsigned half = 0; half < 2 * QUAD; half++)
                to[half] = from_half(from[2 * QUAD * quad + half]);
        }
    }
}

static inline void scatter_d_f16(struct warp *warp, const struct matrix_op *op, const float *matrix)
{
    for (unsigned i = 0; i < op->d.count; i++) {
        unsigned first = first_of_c(op, 2 * i);
        uint16_t *to = reg(warp, op->d.registers[i]);
        for (unsigned quad = 0; quad < QUADS; quad++) {
            const float *from = matrix + first + quad * op->n;
            for (unsigned half = 0; half < 2 * QUAD; half++)
                to[2 * QUAD * quad + half] = to_half(from[half]);
        }
    }
}

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

static void run_multiply_f64(struct warp *warp, const struct insn *insn)
{
    if (!warp_converged(warp, insn, FULL_MASK))
        return;
    const struct matrix_op *op = matrix_op_of(warp, insn);
    double a[FRAGMENT_MAX_SIDE * FRAGMENT_MAX_WORDS], b[FRAGMENT_MAX_SIDE * FRAGMENT_MAX_WORDS];
    double c[FRAGMENT_MAX_SIDE * FRAGMENT_MAX_SIDE];
    gather_rows(warp, op, &op->a, place_a, op->m, sizeof(*a), a);
    gather_b_b64(warp, op, (uint64_t *)b);
    gather_c_f64(warp, op, &op->c, c);
    multiply_dense_f64(op, a, b, c);
    scatter_d_f64(warp, op, c);
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
