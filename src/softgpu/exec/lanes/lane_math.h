/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations of one lane that are no C operators: the helpers of the opcode table's expressions.
 * Those of floating point stand here, and those of integers and bits in lane_bits.h.
 */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "lane_bits.h"

static inline uint32_t float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static inline float bits_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static inline uint64_t double_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static inline double bits_double(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* ---- Floating point ---- */

static inline float quiet(float x)
{
    return x == x ? x : bits_float(0x7fffffff);
}

static inline float quiet_or(float x, float otherwise)
{
    return x == x ? otherwise : bits_float(0x7fffffff);
}

static inline uint32_t flush32(uint32_t bits)
{
    return (bits & 0x7f800000) ? bits : bits & 0x80000000;
}

static inline float flush(float x)
{
    return bits_float(flush32(float_bits(x)));
}

static inline double flush64(double x)
{
    uint64_t bits = double_bits(x);
    return (bits & 0x7ff0000000000000) ? x : bits_double(bits & 0x8000000000000000);
}

/* The approximations of f64 see and give only the upper half. */
static inline double coarse(double x)
{
    return bits_double(double_bits(x) & 0xffffffff00000000);
}

static inline float saturate(float x)
{
    return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f;
}

static inline float relu(float x)
{
    return x != x ? bits_float(0x7fffffff) : x > 0.0f ? x : 0.0f;
}

/* A NaN gives way to a number, and -0 is below +0. */
static inline float min_f32(float a, float b)
{
    float lesser = a < b ? a : b;
    float equal = bits_float(float_bits(a) | float_bits(b));
    float result = a == b ? equal : lesser;
    return a != a ? quiet(b) : b != b ? a : result;
}

static inline float max_f32(float a, float b)
{
    float greater = a > b ? a : b;
    float equal = bits_float(float_bits(a) & float_bits(b));
    float result = a == b ? equal : greater;
    return a != a ? quiet(b) : b != b ? a : result;
}

static inline float nan_min(float a, float b)
{
    return a != a || b != b ? bits_float(0x7fffffff) : min_f32(a, b);
}

static inline float nan_max(float a, float b)
{
    return a != a || b != b ? bits_float(0x7fffffff) : max_f32(a, b);
}

/* .xorsign.abs: of the least or largest magnitude, and both signs together. */
static inline float with_signs(float magnitude, float a, float b)
{
    uint32_t sign = (float_bits(a) ^ float_bits(b)) & 0x80000000;
    return magnitude != magnitude ? magnitude : bits_float(float_bits(magnitude) | sign);
}

#define MAGNITUDES(pick, a, b) with_signs(pick(__builtin_fabsf(a), __builtin_fabsf(b)), a, b)

static inline double min_f64(double a, double b)
{
    double equal = bits_double(double_bits(a) | double_bits(b));
    double result = a == b ? equal : a < b ? a : b;
    return a != a ? b : b != b ? a : result;
}

static inline double max_f64(double a, double b)
{
    double equal = bits_double(double_bits(a) & double_bits(b));
    double result = a == b ? equal : a > b ? a : b;
    return a != a ? b : b != b ? a : result;
}

/* ---- 16-bit floating point ---- */

static inline float from_half(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t magnitude = half & 0x7fff;
    /* Shifted into place the exponent is 112 too small; multiplying mends it, subnormals included.
     */
    float scaled = bits_float(magnitude << 13) * 0x1p112f;
    uint32_t bits = magnitude >= 0x7c00 ? 0x7f800000 | magnitude << 13 : float_bits(scaled);
    return bits_float(bits | sign);
}

static inline uint16_t flush_half(uint16_t half)
{
    return half & 0x7c00 ? half : half & 0x8000;
}

/* .satfinite: an infinity becomes the largest number. */
static inline uint16_t finite_half(uint16_t half)
{
    return (half & 0x7fff) == 0x7c00 ? half - 1 : half;
}

/* Rounds the magnitude to nearest even, keeping `keep` and dropping `drop` bits. */
static inline uint64_t round_even(uint64_t magnitude, unsigned drop)
{
    uint64_t half = 1ull << (drop - 1);
    uint64_t rest = magnitude & ((1ull << drop) - 1);
    uint64_t kept = magnitude >> drop;
    return kept + (rest > half || (rest == half && (kept & 1)));
}

static inline uint16_t half_from_double(double x)
{
    uint64_t bits = double_bits(x);
    uint16_t sign = (uint16_t)(bits >> 48 & 0x8000);
    uint64_t magnitude = bits & 0x7fffffffffffffff;
    int exponent = (int)(magnitude >> 52) - 1023;
    uint64_t mantissa = (magnitude & 0xfffffffffffff) | 0x10000000000000;
    if (magnitude > 0x7ff0000000000000)
        return 0x7fff;
    if (exponent >= 16)
        return sign | 0x7c00;
    if (exponent >= -14)
        return (uint16_t)(sign |
                          (uint16_t)(round_even(mantissa, 42) + (uint64_t)((exponent + 14) << 10)));
    if (exponent < -25)
        return sign;
    return (uint16_t)(sign | (uint16_t)round_even(mantissa, (unsigned)(42 - 14 - exponent)));
}

static inline uint16_t to_half(float x)
{
    return half_from_double((double)x);
}

/* A sum in double whose last bit remembers what was lost, so that rounding it again is right. */
static inline double fma_to_odd(float a, float b, float c)
{
    double product = (double)a * (double)b;
    double sum = product + (double)c;
    double back = sum - product;
    double error = (product - (sum - back)) + ((double)c - back);
    uint64_t bits = double_bits(sum);
    if (error != 0 && sum == sum && !(bits & 1))
        bits = (error > 0) == (sum > 0) ? bits + 1 : bits - 1;
    return error == error ? bits_double(bits) : sum;
}

static inline uint16_t to_half_fma(float a, float b, float c)
{
    return half_from_double(fma_to_odd(a, b, c));
}

static inline float from_bfloat(uint16_t bits)
{
    return bits_float((uint32_t)bits << 16);
}

static inline uint16_t to_bfloat(float x)
{
    uint32_t bits = float_bits(x);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return x == x ? (uint16_t)rounded : 0x7fff;
}

static inline uint16_t finite_bfloat(uint16_t bits)
{
    return (bits & 0x7fff) == 0x7f80 ? bits - 1 : bits;
}

static inline uint16_t to_bfloat_rz(float x)
{
    return x == x ? (uint16_t)(float_bits(x) >> 16) : 0x7fff;
}

/* By way of a float that is rounded to odd, so that the second rounding is right. */
static inline uint16_t bfloat_from_double(double x)
{
    float narrow = (float)x;
    uint32_t bits = float_bits(narrow);
    if ((double)narrow != x && narrow == narrow && !(bits & 1) && (bits & 0x7fffffff) != 0x7f800000)
        bits += __builtin_fabs((double)narrow) < __builtin_fabs(x) ? 1u : -1u;
    return to_bfloat(bits_float(bits));
}

static inline uint16_t to_bfloat_fma(float a, float b, float c)
{
    return bfloat_from_double(fma_to_odd(a, b, c));
}

static inline uint32_t to_tf32(float x)
{
    uint32_t bits = float_bits(x);
    return x != x                              ? 0x7fffffff
           : (bits & 0x7f800000) == 0x7f800000 ? bits
                                               : (bits + 0x1000) & 0xffffe000;
}

/* ---- Integers out of floating point: out of range saturates ---- */

/* A NaN gives zero, but the top bit alone where it is an f64 or the result has 64 bits. */

#define FROM_FLOAT(name, type, low, high, low32, high32, nan32, nan64)                           \
    static inline type name##_from_f32(float x)                                                  \
    {                                                                                            \
        return x != x ? (type)(nan32) : x >= (high32) ? (high) : x <= (low32) ? (low) : (type)x; \
    }                                                                                            \
    static inline type name##_from_f64(double x)                                                 \
    {                                                                                            \
        return x != x                  ? (type)(nan64)                                           \
               : x >= (double)(high32) ? (high)                                                  \
               : x <= (double)(low32)  ? (low)                                                   \
                                       : (type)x;                                                 \
    }
FROM_FLOAT(s8, int8_t, INT8_MIN, INT8_MAX, -128.0f, 127.0f, 0, INT8_MIN)
FROM_FLOAT(u8, uint8_t, 0, UINT8_MAX, 0.0f, 255.0f, 0, 0x80)
FROM_FLOAT(s16, int16_t, INT16_MIN, INT16_MAX, -32768.0f, 32767.0f, 0, INT16_MIN)
FROM_FLOAT(u16, uint16_t, 0, UINT16_MAX, 0.0f, 65535.0f, 0, 0x8000)
FROM_FLOAT(s32, int32_t, INT32_MIN, INT32_MAX, -0x1p31f, 0x1p31f, 0, INT32_MIN)
FROM_FLOAT(u32, uint32_t, 0, UINT32_MAX, 0.0f, 0x1p32f, 0, 0x80000000u)
FROM_FLOAT(s64, int64_t, INT64_MIN, INT64_MAX, -0x1p63f, 0x1p63f, INT64_MIN, INT64_MIN)
FROM_FLOAT(u64, uint64_t, 0, UINT64_MAX, 0.0f, 0x1p64f, 0x8000000000000000u, 0x8000000000000000u)
#undef FROM_FLOAT

#define CLAMP(name, low, high)                              \
    static inline __int128 clamp_##name(__int128 x)         \
    {                                                       \
        return x < (low) ? (low) : x > (high) ? (high) : x; \
    }
CLAMP(s8, INT8_MIN, INT8_MAX)
CLAMP(u8, 0, UINT8_MAX)
CLAMP(s16, INT16_MIN, INT16_MAX)
CLAMP(u16, 0, UINT16_MAX)
CLAMP(s32, INT32_MIN, INT32_MAX)
CLAMP(u32, 0, UINT32_MAX)
CLAMP(s64, INT64_MIN, INT64_MAX)
CLAMP(u64, 0, UINT64_MAX)
#undef CLAMP
