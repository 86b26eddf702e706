/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 8-bit floating point: e4m3, which has no infinity and one NaN, and e5m2, which is the upper half
 * of an f16.
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
