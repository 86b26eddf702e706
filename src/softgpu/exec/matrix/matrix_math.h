/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of matrices in memory: elements are widened, and products are summed up. Counts are
 * elements unless they say words (of 32 bits, or 64 for f64). The functions hold no state; matrices
 * are the caller's and never overlap.
 */
#pragma once

#include <string.h>

#include "fp8.h"
#include "fragment.h"
#include "lane_math.h"

/* Rows, columns and elements come in multiples of it: loops of eight are a vector or two. */
#define EIGHT 8
/* Not unrolled, for then compilers do not see the vector any more. */
#define EACH_OF_EIGHT _Pragma("GCC unroll 1") for (unsigned j = 0; j < EIGHT; j++)

#define WIDEN(name, element_type, type, expression)                                       \
    static inline void widen_##name(const void *words, unsigned count, type *ret_values)  \
    {                                                                                     \
        const element_type *from = words;                                                 \
        for (unsigned i = 0; i < count; i += EIGHT, from += EIGHT, ret_values += EIGHT) { \
            EACH_OF_EIGHT                                                                 \
            {                                                                             \
                element_type x = from[j];                                                 \
                ret_values[j] = (expression);                                             \
            }                                                                             \
        }                                                                                 \
    }
WIDEN(f16, uint16_t, float, from_half(x))
WIDEN(bf16, uint16_t, float, from_bfloat(x))
WIDEN(tf32, uint32_t, float, bits_float(x & 0xffffe000))
WIDEN(e4m3, uint8_t, float, from_e4m3(x))
WIDEN(e5m2, uint8_t, float, from_e5m2(x))
WIDEN(s8, int8_t, int32_t, x)
WIDEN(u8, uint8_t, int32_t, x)
#undef WIDEN

static inline void widen_nibbles(const void *words, unsigned count, bool is_signed,
                                 int32_t *ret_values)
{
    const uint8_t *from = words;
    for (unsigned i = 0; i < count; i++) {
        int32_t nibble = from[i / 2] >> (i % 2 * 4) & 0xf;
        ret_values[i] = is_signed ? (nibble ^ 8) - 8 : nibble;
    }
}

static inline void widen_f32(enum fragment_element element, const void *words, unsigned count,
                             float *ret_values)
{
    switch (element) {
    case FRAGMENT_F16:
        widen_f16(words, count, ret_values);
        return;
    case FRAGMENT_BF16:
        widen_bf16(words, count, ret_values);
        return;
    case FRAGMENT_E4M3:
        widen_e4m3(words, count, ret_values);
        return;
    case FRAGMENT_E5M2:
        widen_e5m2(words, count, ret_values);
        return;
    default:
        widen_tf32(words, count, ret_values);
    }
}

static inline void widen_s32(enum fragment_element element, const void *words, unsigned count,
                             int32_t *ret_values)
{
    switch (element) {
    case FRAGMENT_S8:
        widen_s8(words, count, ret_values);
        return;
    case FRAGMENT_U8:
        widen_u8(words, count, ret_values);
        return;
    default:
        widen_nibbles(words, count, element == FRAGMENT_S4, ret_values);
    }
}

/* ---- B: words that lie side by side, column by column, become the rows that are in them ---- */

#define WIDEN_ROWS(name, element_bits, type, expression)                                        \
    static inline void widen_rows_##name(const uint32_t *words, unsigned word_rows, unsigned n, \
                                         type *ret_rows)                                        \
    {                                                                                           \
        for (unsigned row = 0; row < word_rows * (32 / element_bits); row++) {                  \
            const uint32_t *from = &words[row / (32 / element_bits) * n];                       \
            unsigned shift = row % (32 / element_bits) * element_bits;                          \
            for (unsigned first = 0; first < n; first += EIGHT, ret_rows += EIGHT) {            \
                EACH_OF_EIGHT                                                                   \
                {                                                                               \
                    uint32_t x = from[first + j] >> shift;                                      \
                    ret_rows[j] = (expression);                                                 \
                }                                                                               \
            }                                                                                   \
        }                                                                                       \
    }
WIDEN_ROWS(f16, 16, float, from_half((uint16_t)x))
WIDEN_ROWS(bf16, 16, float, from_bfloat((uint16_t)x))
WIDEN_ROWS(tf32, 32, float, bits_float(x & 0xffffe000))
WIDEN_ROWS(e4m3, 8, float, from_e4m3((uint8_t)x))
WIDEN_ROWS(e5m2, 8, float, from_e5m2((uint8_t)x))
WIDEN_ROWS(s8, 8, int32_t, (int8_t)x)
WIDEN_ROWS(u8, 8, int32_t, (uint8_t)x)
WIDEN_ROWS(s4, 4, int32_t, (int32_t)((x & 0xf) ^ 8) - 8)
WIDEN_ROWS(u4, 4, int32_t, (int32_t)(x & 0xf))
#undef WIDEN_ROWS

static inline void widen_rows_f32(enum fragment_element element, const uint32_t *words,
                                  unsigned word_rows, unsigned n, float *ret_rows)
{
    switch (element) {
    case FRAGMENT_F16:
        widen_rows_f16(words, word_rows, n, ret_rows);
        return;
    case FRAGMENT_BF16:
        widen_rows_bf16(words, word_rows, n, ret_rows);
        return;
    case FRAGMENT_E4M3:
        widen_rows_e4m3(words, word_rows, n, ret_rows);
        return;
    case FRAGMENT_E5M2:
        widen_rows_e5m2(words, word_rows, n, ret_rows);
        return;
    default:
        widen_rows_tf32(words, word_rows, n, ret_rows);
    }
}

static inline void widen_rows_s32(enum fragment_element element, const uint32_t *words,
                                  unsigned word_rows, unsigned n, int32_t *ret_rows)
{
    switch (element) {
    case FRAGMENT_S8:
        widen_rows_s8(words, word_rows, n, ret_rows);
        return;
    case FRAGMENT_U8:
        widen_rows_u8(words, word_rows, n, ret_rows);
        return;
    case FRAGMENT_S4:
        widen_rows_s4(words, word_rows, n, ret_rows);
        return;
    default:
        widen_rows_u4(words, word_rows, n, ret_rows);
    }
}

/* ---- Products ---- */

/* Rows of A that are multiplied together, so that each row of B is read once for all of them. */
#define ROWS 4

/* Eight sums of a row; elementwise operators work on it as on a number. */
typedef float row_f32 __attribute__((vector_size(EIGHT * sizeof(float)), aligned(4)));
typedef int32_t row_s32 __attribute__((vector_size(EIGHT * sizeof(int32_t)), aligned(4)));

/*
 * c = a * b + c. Sums do not depend on each other, so those of ROWS rows stay in the CPU's
 * registers while k runs. The count m is a multiple of ROWS.
 */
#define MULTIPLY_DENSE(name, type)                                                                 \
    static inline void multiply_block_##name(const type *a, const type *b, unsigned n, unsigned k, \
                                             type *c)                                              \
    {                                                                                              \
        row_##name sum[ROWS];                                                                      \
        for (unsigned row = 0; row < ROWS; row++)                                                  \
            sum[row] = *(const row_##name *)(c + row * n);                                         \
        for (unsigned i = 0; i < k; i++) {                                                         \
            for (unsigned row = 0; row < ROWS; row++)                                              \
                sum[row] += a[row * k + i] * *(const row_##name *)(b + i * n);                     \
        }                                                                                          \
        for (unsigned row = 0; row < ROWS; row++)                                                  \
            *(row_##name *)(c + row * n) = sum[row];                                               \
    }                                                                                              \
    static inline void multiply_dense_##name(const struct matrix_op *op, const type *a,            \
                                             const type *b, type *c)                               \
    {                                                                                              \
        for (unsigned row = 0; row < op->m; row += ROWS) {                                         \
            for (unsigned first = 0; first < op->n; first += EIGHT)                                \
                multiply_block_##name(a + row * op->k, b + first, op->n, op->k,                    \
                                      c + row * op->n + first);                                    \
        }                                                                                          \
    }
MULTIPLY_DENSE(f32, float)
MULTIPLY_DENSE(s32, int32_t)
#undef MULTIPLY_DENSE

/* Fused: products of doubles are not exact. */
static inline void multiply_dense_f64(const struct matrix_op *op, const double *a, const double *b,
                                      double *c)
{
    for (unsigned at = 0; at < (unsigned)op->m * op->n; at += EIGHT) {
        const double *x = a + at / op->n * op->k, *y = b + at % op->n;
        double sum[EIGHT];
        memcpy(sum, c + at, sizeof(sum));
        for (unsigned i = 0; i < op->k; i++) {
            EACH_OF_EIGHT
            sum[j] = __builtin_fma(x[i], y[i * op->n + j], sum[j]);
        }
        memcpy(c + at, sum, sizeof(sum));
    }
}

/* For a sparse A, `chosen` has the row of B of each element. */
#define MULTIPLY_SPARSE(name, type)                                                          \
    static inline void multiply_sparse_##name(const struct matrix_op *op, const type *a,     \
                                              const type *b, const uint8_t *chosen, type *c) \
    {                                                                                        \
        for (unsigned at = 0; at < (unsigned)op->m * op->n; at += EIGHT) {                   \
            row_##name sum = *(const row_##name *)(c + at);                                  \
            unsigned start = at / op->n * op->a.depth;                                       \
            for (unsigned i = start; i < start + op->a.depth; i++)                           \
                sum += a[i] * *(const row_##name *)(b + chosen[i] * op->n + at % op->n);     \
            *(row_##name *)(c + at) = sum;                                                   \
        }                                                                                    \
    }
MULTIPLY_SPARSE(f32, float)
MULTIPLY_SPARSE(s32, int32_t)
#undef MULTIPLY_SPARSE
