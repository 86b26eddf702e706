/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 8-bit floating point: e4m3 has no infinity and one NaN, and e5m2 is the upper half of an f16.
 */
#pragma once

#include "lane_math.h"

static inline float from_e4m3(uint8_t x)
{
    uint32_t sign = (uint32_t)(x & 0x80) << 24;
    uint32_t magnitude = x & 0x7f;
    /* As in from_half: shifted into place the exponent is 120 too small. */
    float scaled = bits_float(magnitude << 20) * 0x1p120f;
    uint32_t bits = magnitude == 0x7f ? 0x7fffffff : float_bits(scaled);
    return bits_float(bits | sign);
}

static inline float from_e5m2(uint8_t x)
{
    return from_half((uint16_t)(x << 8));
}

/* To nearest, ties to even; beyond the largest the largest. `low` is how many bits a float has
 * more, `bias` how much larger its exponent is. */
static inline uint8_t to_fp8(float x, unsigned low, uint32_t bias, float subnormals, uint32_t most)
{
    float magnitude = bits_float(float_bits(x) & 0x7fffffff);
    uint32_t bits = float_bits(magnitude), sign = float_bits(x) >> 24 & 0x80;
    uint32_t normal =
        ((bits + (1u << (low - 1)) - 1 + (bits >> low & 1)) >> low) - (bias << (23 - low));
    uint32_t subnormal = (uint32_t)__builtin_rintf(magnitude * subnormals);
    uint32_t first = (bias + 1) << 23; /* the smallest normal number */
    uint32_t code = bits < first ? subnormal : normal;
    code = code > most || bits >= 0x7f800000 ? most : code;
    return (uint8_t)(bits > 0x7f800000 ? 0x7f : code | sign);
}

static inline uint8_t to_e4m3(float x)
{
    return to_fp8(x, 20, 120, 0x1p9f, 0x7e);
}

static inline uint8_t to_e5m2(float x)
{
    return to_fp8(x, 21, 112, 0x1p16f, 0x7b);
}

static inline uint16_t pack8(uint8_t low, uint8_t high)
{
    return (uint16_t)(low | high << 8);
}
