/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bits of NaN results. The PTX ISA does not specify them; these were measured on GPUs of
 * compute capability 9.0.
 */
#pragma once

#include <stdint.h>

#include "lane_math.h"

static inline uint32_t f32_one_nan(uint32_t bits)
{
    return (bits & 0x7fffffff) > 0x7f800000 ? 0x7fffffff : bits;
}

static inline uint16_t f16_one_nan(uint16_t bits)
{
    return (bits & 0x7fff) > 0x7c00 ? 0x7fff : bits;
}

static inline uint32_t f16x2_one_nan(uint32_t bits)
{
    return (uint32_t)f16_one_nan((uint16_t)(bits >> 16)) << 16 | f16_one_nan((uint16_t)bits);
}

static inline uint16_t bf16_one_nan(uint16_t bits)
{
    return (bits & 0x7fff) > 0x7f80 ? 0x7fff : bits;
}

static inline uint32_t bf16x2_one_nan(uint32_t bits)
{
    return (uint32_t)bf16_one_nan((uint16_t)(bits >> 16)) << 16 | bf16_one_nan((uint16_t)bits);
}

/* The NaN in a, made quiet, else the other bits. */
static inline uint64_t f64_nan_or(uint64_t a, uint64_t otherwise)
{
    return (a & 0x7fffffffffffffff) > 0x7ff0000000000000 ? a | 0x0008000000000000 : otherwise;
}

/* The first of these that is a NaN, made quiet, else the result. An H200 looks at the operands in
 * the order b, c, a; but ptxas exchanges factors. */
static inline double f64_first_nan(double a, double b, double c, double result)
{
    uint64_t last = f64_nan_or(double_bits(c), double_bits(result));
    return bits_double(f64_nan_or(double_bits(a), f64_nan_or(double_bits(b), last)));
}

/* The NaN x in 16 bits, of which `kept` are the first of its mantissa. */
static inline uint16_t nan_bits(double x, unsigned kept)
{
    uint64_t bits = double_bits(x) | 0x0008000000000000;
    uint64_t mantissa = (bits & 0xfffffffffffff) >> (52 - kept);
    return (uint16_t)((bits >> 48 & 0x8000) | (0x7fff & -(1u << kept)) | mantissa);
}
