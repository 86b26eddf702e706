/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of one lane on integers and bits that are no C operators. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

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
