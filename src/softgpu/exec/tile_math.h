/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What multiplying matrices computes, once they lie whole in memory: elements are made wide, and
 * products are summed up.
 */
#pragma once

#include <string.h>

#include "fp8.h"
#include "lane_math.h"
#include "tile.h"

#define WIDEN(name, element_type, type, expression)                                      \
    static inline void widen_##name(const void *words, unsigned count, type *ret_values) \
    {                                                                                    \
        const element_type *from = words;                                                \
        for (unsigned i = 0; i < count; i++) {                                           \
            element_type x = from[i];                                                    \
            ret_values[i] = (expression);                                                \
        }                                                                                \
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

static inline void widen_f32(enum tile_element element, const void *words, unsigned count,
                             float *ret_values)
{
    switch (element) {
    case TILE_F16:
        widen_f16(words, count, ret_values);
        return;
    case TILE_BF16:
        widen_bf16(words, count, ret_values);
        return;
    case TILE_E4M3:
        widen_e4m3(words, count, ret_values);
        return;
    case TILE_E5M2:
        widen_e5m2(words, count, ret_values);
        return;
    default:
        widen_tf32(words, count, ret_values);
    }
}

static inline void widen_s32(enum tile_element element, const void *words, unsigned count,
                             int32_t *ret_values)
{
    switch (element) {
    case TILE_S8:
        widen_s8(words, count, ret_values);
        return;
    case TILE_U8:
        widen_u8(words, count, ret_values);
        return;
    default:
        widen_nibbles(words, count, element == TILE_S4, ret_values);
    }
}

/* B comes as columns; as rows its neighbours can be multiplied together. */
#define TRANSPOSE(type)                                                              \
    static inline void transpose_##type(const type *columns, unsigned n, unsigned k, \
                                        type *ret_rows)                              \
    {                                                                                \
        for (unsigned column = 0; column < n; column++) {                            \
            for (unsigned row = 0; row < k; row++)                                   \
                ret_rows[row * n + column] = columns[column * k + row];              \
        }                                                                            \
    }
TRANSPOSE(float)
TRANSPOSE(double)
TRANSPOSE(int32_t)
#undef TRANSPOSE

/* n is 8, 16 or 32: eight columns at a time. Of a sparse A, `chosen` says element by element which
 * row of B it meets; NULL where all of them are there. */
#define MULTIPLY(name, type, add)                                                               \
    static inline void multiply_##name(const struct tile_op *op, const type *a, const type *b,  \
                                       const uint8_t *chosen, type *c)                          \
    {                                                                                           \
        unsigned depth = op->a.depth;                                                           \
        for (unsigned row = 0; row < op->m; row++) {                                            \
            for (unsigned first = 0; first < op->n; first += 8) {                               \
                type sum[8];                                                                    \
                memcpy(sum, &c[row * op->n + first], sizeof(sum));                              \
                for (unsigned i = row * depth; i < (row + 1) * depth; i++) {                    \
                    type x = a[i];                                                              \
                    const type *y = &b[(chosen ? chosen[i] : i - row * depth) * op->n + first]; \
                    for (unsigned j = 0; j < 8; j++)                                            \
                        sum[j] = add;                                                           \
                }                                                                               \
                memcpy(&c[row * op->n + first], sum, sizeof(sum));                              \
            }                                                                                   \
        }                                                                                       \
    }
MULTIPLY(f32, float, sum[j] + x * y[j])
MULTIPLY(f64, double, __builtin_fma(x, y[j], sum[j]))
MULTIPLY(s32, int32_t, sum[j] + x * y[j])
#undef MULTIPLY
