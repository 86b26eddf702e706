/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations of one lane that are no C operators: the helpers of the opcode table's expressions.
 */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

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

/* ---- Integers and bits ---- */

static inline int32_t saturate_s32(int64_t x)
{
    return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (int32_t)x;
}

static inline uint32_t high_product32(uint32_t a, uint32_t b)
{
    return (uint32_t)(((int64_t)(int32_t)a * (int32_t)b) >> 32);
}

static inline uint64_t high_product64(uint64_t a, uint64_t b)
{
    return (uint64_t)(((__int128)(int64_t)a * (int64_t)b) >> 64);
}

static inline int32_t at_least_0(int32_t x)
{
    return x < 0 ? 0 : x;
}

static inline int32_t sign_extend24(int32_t x)
{
    return (int32_t)((uint32_t)x << 8) >> 8;
}

static inline int32_t sign_extend_from(int32_t x, uint32_t width)
{
    return width == 0 ? 0 : (int32_t)((uint32_t)x << (32 - width)) >> (32 - width);
}

static inline uint32_t pack16(uint32_t low, uint32_t high)
{
    return (low & 0xffff) | high << 16;
}

static inline uint32_t find_bit(uint64_t x)
{
    return x ? 63 - (uint32_t)__builtin_clzll(x) : UINT32_MAX;
}

static inline uint32_t shift_amount32(uint32_t x)
{
    return x ? (uint32_t)__builtin_clz(x) : UINT32_MAX;
}

static inline uint32_t shift_amount64(uint64_t x)
{
    return x ? (uint32_t)__builtin_clzll(x) : UINT32_MAX;
}

/*
 * From bit `base` on the offset-th set bit, downward when the offset is negative. The least offset,
 * which has no positive counterpart, gives zero on an H100.
 */
static inline uint32_t find_nth_set(uint32_t mask, uint32_t base, int32_t offset)
{
    if (offset == INT32_MIN)
        return 0;
    int32_t wanted = offset == 0 ? 1 : offset > 0 ? offset : -offset;
    int step = offset < 0 ? -1 : 1;
    int32_t seen = 0;
    if (offset == 0)
        return base < 32 && (mask >> base & 1) ? base : UINT32_MAX;
    for (int bit = (int)(base & 31); bit >= 0 && bit < 32; bit += step) {
        seen += mask >> bit & 1;
        if (seen == wanted)
            return (uint32_t)bit;
    }
    return UINT32_MAX;
}

static inline uint32_t reverse32(uint32_t x)
{
    x = (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
    x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
    x = (x >> 4 & 0x0f0f0f0f) | (x & 0x0f0f0f0f) << 4;
    return __builtin_bswap32(x);
}

static inline uint64_t reverse64(uint64_t x)
{
    return (uint64_t)reverse32((uint32_t)x) << 32 | reverse32((uint32_t)(x >> 32));
}

static inline uint32_t low_bits32(uint32_t count)
{
    return count >= 32 ? UINT32_MAX : (1u << count) - 1;
}

static inline uint64_t low_bits64(uint32_t count)
{
    return count >= 64 ? UINT64_MAX : (1ull << count) - 1;
}

/*
 * Position and length of a field have 8 bits in the instructions of 32 bits, as the PTX ISA
 * says. Those of 64 bits take all 32 bits of both on an H100, so they do here.
 */
static inline uint32_t extract_u32(uint32_t x, uint32_t position, uint32_t length)
{
    position &= 0xff;
    return position > 31 ? 0 : (x >> position) & low_bits32(length & 0xff);
}

static inline uint64_t extract_u64(uint64_t x, uint32_t position, uint32_t length)
{
    return position > 63 ? 0 : (x >> position) & low_bits64(length);
}

/* The sign is the field's top bit, or the value's when the field reaches beyond it. */
static inline int32_t extract_s32(int32_t x, uint32_t position, uint32_t length)
{
    position &= 0xff;
    length &= 0xff;
    if (length == 0)
        return 0;
    uint32_t top = MIN(position + length - 1, 31);
    uint32_t sign = (uint32_t)x >> top & 1 ? UINT32_MAX : 0;
    uint32_t field = low_bits32(length);
    uint32_t have = position > 31 ? 0 : low_bits32(32 - position);
    uint32_t shifted = position > 31 ? 0 : (uint32_t)x >> position;
    return (int32_t)((shifted & field & have) | (sign & ~(field & have)));
}

static inline int64_t extract_s64(int64_t x, uint32_t position, uint32_t length)
{
    if (length == 0)
        return 0;
    uint32_t top = (uint32_t)MIN((uint64_t)position + length - 1, 63);
    uint64_t sign = (uint64_t)x >> top & 1 ? UINT64_MAX : 0;
    uint64_t field = low_bits64(length);
    uint64_t have = position > 63 ? 0 : low_bits64(64 - position);
    uint64_t shifted = position > 63 ? 0 : (uint64_t)x >> position;
    return (int64_t)((shifted & field & have) | (sign & ~(field & have)));
}

static inline uint32_t insert_b32(uint32_t from, uint32_t into, uint32_t position, uint32_t length)
{
    position &= 0xff;
    if (position > 31)
        return into;
    uint32_t field = low_bits32(length & 0xff) << position;
    return (into & ~field) | (from << position & field);
}

static inline uint64_t insert_b64(uint64_t from, uint64_t into, uint32_t position, uint32_t length)
{
    if (position > 63)
        return into;
    uint64_t field = low_bits64(length) << position;
    return (into & ~field) | (from << position & field);
}

static inline uint32_t make_mask(uint32_t position, uint32_t length, bool wraps)
{
    if (wraps) {
        position &= 31;
        length &= 31;
    }
    return position > 31 ? 0 : low_bits32(length) << position;
}

static inline uint32_t logic3(uint32_t a, uint32_t b, uint32_t c, uint32_t table)
{
    uint32_t result = 0;
    for (unsigned i = 0; i < 8; i++) {
        uint32_t minterm = ((i & 4) ? a : ~a) & ((i & 2) ? b : ~b) & ((i & 1) ? c : ~c);
        result |= minterm & -(table >> i & 1);
    }
    return result;
}

/* Every selector nibble picks a byte of b:a, or copies that byte's sign all over. */
static inline uint32_t permute(uint32_t a, uint32_t b, uint32_t selector)
{
    uint64_t bytes = (uint64_t)b << 32 | a;
    uint32_t result = 0;
    for (unsigned i = 0; i < 4; i++) {
        uint32_t nibble = selector >> (4 * i) & 0xf;
        uint32_t byte = (uint32_t)(bytes >> (8 * (nibble & 7))) & 0xff;
        uint32_t spread = byte & 0x80 ? 0xff : 0;
        result |= ((nibble & 8) ? spread : byte) << (8 * i);
    }
    return result;
}

static inline uint32_t permute_f4e(uint32_t c)
{
    return 0x3210 + 0x1111 * (c & 3);
}

static inline uint32_t permute_b4e(uint32_t c)
{
    static const uint16_t selectors[4] = {0x5670, 0x6701, 0x7012, 0x0123};
    return selectors[c & 3];
}

static inline uint32_t permute_ecl(uint32_t c)
{
    static const uint16_t selectors[4] = {0x3210, 0x3211, 0x3222, 0x3333};
    return selectors[c & 3];
}

static inline uint32_t permute_ecr(uint32_t c)
{
    static const uint16_t selectors[4] = {0x0000, 0x1110, 0x2210, 0x3210};
    return selectors[c & 3];
}

static inline uint32_t dot4_uu(uint32_t a, uint32_t b)
{
    uint32_t sum = 0;
    for (unsigned i = 0; i < 32; i += 8)
        sum += (a >> i & 0xff) * (b >> i & 0xff);
    return sum;
}

static inline int32_t dot4_us(uint32_t a, uint32_t b)
{
    int32_t sum = 0;
    for (unsigned i = 0; i < 32; i += 8)
        sum += (int32_t)(a >> i & 0xff) * (int8_t)(b >> i);
    return sum;
}

static inline int32_t dot4_ss(uint32_t a, uint32_t b)
{
    int32_t sum = 0;
    for (unsigned i = 0; i < 32; i += 8)
        sum += (int32_t)(int8_t)(a >> i) * (int8_t)(b >> i);
    return sum;
}
