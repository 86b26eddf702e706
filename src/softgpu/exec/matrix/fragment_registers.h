/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the lanes' registers to whole matrices, and back. Matrices are the caller's, large enough
 * for the op (m * k, k * n or m * n elements). Registers of all lanes are read and written, whether
 * these are active or not. The host thread that runs the warp's block calls the functions.
 */
#pragma once

#include <string.h>

#include "fragment.h"
#include "lane_math.h"

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

/* Where the first quad's elements of C and D begin in this register: 8 neighbors in a row. Elements
 * as wide as a register are in the next one, too. The other quads' are in the rows below. */
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
