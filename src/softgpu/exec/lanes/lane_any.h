/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions over all lanes. Compilers turn such loops into long chains of shuffles, so this file
 * uses the CPU's instructions.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lanes.h"
#ifdef __SSE2__
#include <immintrin.h>
#endif

/* The lanes whose flag has its highest bit set. */
static inline uint32_t mask_of_flags(const uint32_t *flags)
{
    uint32_t mask = 0;
#if defined(__AVX512DQ__)
    for (unsigned lane = 0; lane < LANES; lane += 16)
        mask |= (uint32_t)_mm512_movepi32_mask(_mm512_load_si512(flags + lane)) << lane;
#elif defined(__AVX__)
    for (unsigned lane = 0; lane < LANES; lane += 8)
        mask |= (uint32_t)_mm256_movemask_ps(_mm256_load_ps((const float *)flags + lane)) << lane;
#elif defined(__SSE2__)
    for (unsigned lane = 0; lane < LANES; lane += 4)
        mask |= (uint32_t)_mm_movemask_ps(_mm_load_ps((const float *)flags + lane)) << lane;
#else
    for (unsigned lane = 0; lane < LANES; lane++)
        mask |= flags[lane] >> 31 << lane;
#endif
    return mask;
}

/* Whether any bit of `size` bytes is set, for CPUs without AVX-512. */
static inline bool any_vector_set(const void *value, unsigned size)
{
#if defined(__AVX2__)
    const __m256i *vector = (const __m256i *)value;
    __m256i any = _mm256_setzero_si256();
    for (unsigned i = 0; i < size / sizeof(*vector); i++)
        any = _mm256_or_si256(any, _mm256_load_si256(vector + i));
    return !_mm256_testz_si256(any, any);
#elif defined(__SSE2__)
    const __m128i *vector = (const __m128i *)value;
    __m128i any = _mm_setzero_si128();
    for (unsigned i = 0; i < size / sizeof(*vector); i++)
        any = _mm_or_si128(any, _mm_load_si128(vector + i));
    return _mm_movemask_epi8(_mm_cmpeq_epi8(any, _mm_setzero_si128())) != 0xffff;
#else
    const uint64_t *words = (const uint64_t *)value;
    uint64_t any = 0;
    for (unsigned i = 0; i < size / sizeof(*words); i++)
        any |= words[i];
    return any != 0;
#endif
}

/* Whether any lane has any bit set. */
static inline bool any_set32(const uint32_t *value)
{
#if defined(__AVX512F__)
    __m512i any = _mm512_or_si512(_mm512_load_si512(value), _mm512_load_si512(value + 16));
    return _mm512_test_epi32_mask(any, any) != 0;
#else
    return any_vector_set(value, LANES * sizeof(*value));
#endif
}

static inline bool any_set64(const uint64_t *value)
{
#if defined(__AVX512F__)
    __m512i any = _mm512_or_si512(
        _mm512_or_si512(_mm512_load_si512(value), _mm512_load_si512(value + 8)),
        _mm512_or_si512(_mm512_load_si512(value + 16), _mm512_load_si512(value + 24)));
    return _mm512_test_epi64_mask(any, any) != 0;
#else
    return any_vector_set(value, LANES * sizeof(*value));
#endif
}

static inline bool any_nan(const float *value)
{
#if defined(__AVX512F__)
    __m512 low = _mm512_load_ps(value), high = _mm512_load_ps(value + 16);
    return _mm512_cmp_ps_mask(low, high, _CMP_UNORD_Q) != 0;
#elif defined(__AVX__)
    __m256 any = _mm256_setzero_ps();
    for (unsigned lane = 0; lane < LANES; lane += 16) {
        __m256 low = _mm256_load_ps(value + lane), high = _mm256_load_ps(value + lane + 8);
        any = _mm256_or_ps(any, _mm256_cmp_ps(low, high, _CMP_UNORD_Q));
    }
    return _mm256_movemask_ps(any) != 0;
#elif defined(__SSE2__)
    __m128 any = _mm_setzero_ps();
    for (unsigned lane = 0; lane < LANES; lane += 8)
        any = _mm_or_ps(any,
                        _mm_cmpunord_ps(_mm_load_ps(value + lane), _mm_load_ps(value + lane + 4)));
    return _mm_movemask_ps(any) != 0;
#else
    bool any = false;
    for (unsigned lane = 0; lane < LANES; lane++)
        any |= value[lane] != value[lane];
    return any;
#endif
}
