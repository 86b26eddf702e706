/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streaming copies in three widths. Each copies up to a cache line of the destination, moves whole
 * lines, and leaves the rest to memcpy(). Lines are prefetched explicitly, because the hardware
 * does not prefetch beyond a page.
 */
#include "streaming_copy.h"

#include <stdint.h>
#include <string.h>

#include "feature.h"

static void copy_plainly(void *dst, const void *src, size_t size)
{
    memcpy(dst, src, size);
}

#if defined(__x86_64__)
#include <immintrin.h>

#define LINE 64u
#define AHEAD 1024u

/* Bytes up to the next line of `dst`. */
static size_t lead_of(const void *dst, size_t size)
{
    size_t lead = -(uintptr_t)dst & (LINE - 1);

    return lead < size ? lead : size;
}

/* The part that the three share; `move_lines` moves whole lines to an aligned place. */
static inline __attribute__((always_inline)) void
copy_lines(unsigned char *dst, const unsigned char *src, size_t size,
           void (*move_lines)(unsigned char *, const unsigned char *, size_t))
{
    size_t lead = lead_of(dst, size), lines = (size - lead) & ~(size_t)(LINE - 1);

    memcpy(dst, src, lead);
    move_lines(dst + lead, src + lead, lines);
    memcpy(dst + lead + lines, src + lead + lines, size - lead - lines);
    _mm_sfence();
}

static void move_sse2(unsigned char *dst, const unsigned char *src, size_t size)
{
    for (size_t at = 0; at < size; at += LINE) {
        const __m128i *from = (const __m128i *)(src + at);
        __m128i *to = (__m128i *)(dst + at);
        __m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1);
        __m128i c = _mm_loadu_si128(from + 2), d = _mm_loadu_si128(from + 3);

        _mm_prefetch((const char *)src + at + AHEAD, _MM_HINT_T0);
        _mm_stream_si128(to, a);
        _mm_stream_si128(to + 1, b);
        _mm_stream_si128(to + 2, c);
        _mm_stream_si128(to + 3, d);
    }
}

__attribute__((target("avx2"))) static void move_avx2(unsigned char *dst, const unsigned char *src,
                                                      size_t size)
{
    for (size_t at = 0; at < size; at += LINE) {
        const __m256i *from = (const __m256i *)(src + at);
        __m256i *to = (__m256i *)(dst + at);
        __m256i a = _mm256_loadu_si256(from), b = _mm256_loadu_si256(from + 1);

        _mm_prefetch((const char *)src + at + AHEAD, _MM_HINT_T0);
        _mm256_stream_si256(to, a);
        _mm256_stream_si256(to + 1, b);
    }
}

__attribute__((target("avx512f"))) static void move_avx512(unsigned char *dst,
                                                           const unsigned char *src, size_t size)
{
    for (size_t at = 0; at < size; at += LINE) {
        __m512i line = _mm512_loadu_si512(src + at);

        _mm_prefetch((const char *)src + at + AHEAD, _MM_HINT_T0);
        _mm512_stream_si512((__m512i *)(dst + at), line);
    }
}

static void copy_sse2(void *dst, const void *src, size_t size)
{
    copy_lines(dst, src, size, move_sse2);
}

static void copy_avx2(void *dst, const void *src, size_t size)
{
    copy_lines(dst, src, size, move_avx2);
}

static void copy_avx512(void *dst, const void *src, size_t size)
{
    copy_lines(dst, src, size, move_avx512);
}

static const struct copy_variant variants[] = {
    {"memcpy", copy_plainly},
    {"sse2", copy_sse2},
    {"avx2", copy_avx2},
    {"avx512", copy_avx512},
};

static unsigned count_variants(void)
{
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2"))
        return 2;
    return __builtin_cpu_supports("avx512f") ? 4 : 3;
}

#else

static const struct copy_variant variants[] = {{"memcpy", copy_plainly}};

static unsigned count_variants(void)
{
    return 1;
}

#endif

unsigned copy_variants(const struct copy_variant **ret_variants)
{
    *ret_variants = variants;
    return count_variants();
}

static void (*chosen)(void *dst, const void *src, size_t size) = copy_plainly;

void streaming_copy_init(void)
{
    bool off = feature_is_off(FEATURE_STREAMING_COPY);

    chosen = variants[off ? 0 : count_variants() - 1].copy;
}

void streaming_copy(void *dst, const void *src, size_t size)
{
    if (size < STREAMING_COPY_FROM)
        memcpy(dst, src, size);
    else
        chosen(dst, src, size);
}
