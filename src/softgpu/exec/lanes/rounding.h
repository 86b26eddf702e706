/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversions to half and bfloat16 with a rounding other than to nearest.
 */
#pragma once

#include "lane_math.h"

enum rounding {
    TOWARD_ZERO,
    DOWNWARD,
    UPWARD,
};

/* A double that need not be equal, but lies on the same side of every shorter number. */
static inline double odd_from_u64(uint64_t x)
{
    bool is_long = x >> 53;
    return (double)(is_long ? (x & ~0xfffull) | (x & 0xfff ? 0x800 : 0) : x);
}

static inline double odd_from_s64(int64_t x)
{
    return x < 0 ? -odd_from_u64(-(uint64_t)x) : odd_from_u64((uint64_t)x);
}

/*
 * The same value in double, but subnormal values become ones on the same side of every half. The
 * conversion itself makes zeros of them where the environment flushes.
 */
static inline double widened(float x)
{
    uint32_t bits = float_bits(x), magnitude = bits & 0x7fffffff;
    bool is_subnormal = magnitude != 0 && magnitude < 0x00800000;
    return (double)bits_float(is_subnormal ? (bits & 0x80000000) | 0x00800000 : bits);
}

/* To a format of so many bits of mantissa whose least normal exponent is given; 16 bits in all. */
static inline uint16_t round_toward(double x, enum rounding direction, unsigned mantissa_bits,
                                    int least)
{
    uint64_t bits = double_bits(x);
    bool negative = bits >> 63, away = direction == (negative ? DOWNWARD : UPWARD);
    uint64_t magnitude = bits & 0x7fffffffffffffff;
    uint32_t sign = negative ? 0x8000 : 0, infinity = 0x7fffu & ~((1u << mantissa_bits) - 1);
    if (magnitude > 0x7ff0000000000000)
        return 0x7fff;
    if (magnitude == 0x7ff0000000000000)
        return (uint16_t)(sign | infinity);
    int exponent = (int)(magnitude >> 52) - 1023;
    uint64_t whole = (magnitude & 0xfffffffffffff) | (exponent > -1023 ? 0x10000000000000 : 0);
    int shift = 52 - (int)mantissa_bits + (exponent < least ? least - exponent : 0);
    uint64_t kept = shift < 64 ? whole >> shift : 0;
    bool lost = shift < 64 ? (kept << shift) != whole : whole != 0;
    uint64_t result = kept + (lost && away);
    if (exponent >= least)
        result += (uint64_t)(exponent - least) << mantissa_bits;
    if (result >= infinity)
        result = away ? infinity : infinity - 1;
    return (uint16_t)(sign | result);
}

static inline uint32_t to_tf32_rz(float x)
{
    return x != x ? 0x7fffffff : float_bits(x) & 0xffffe000;
}

static inline uint32_t to_tf32_even(float x)
{
    uint32_t bits = float_bits(x);
    uint32_t rounded = (bits + 0xfff + (bits >> 13 & 1)) & 0xffffe000;
    uint32_t special = x != x ? 0x7fffe000 : bits;
    return (bits & 0x7f800000) == 0x7f800000 ? special : rounded;
}

#define ROUNDED_f16(x, direction) round_toward((x), (direction), 10, -14)
#define ROUNDED_bf16(x, direction) round_toward((x), (direction), 7, -126)

/* All in integers: arithmetic that flushes subnormals would lose those of the result. */
static inline uint16_t to_half_rz(float x)
{
    return ROUNDED_f16((double)x, TOWARD_ZERO);
}
