/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions that pick, move and count bits, one by one: what nvcc makes of intrinsics.
 */
#include "rows.h"

#include <string.h>

#define REF(name) static uint64_t name(const struct row *row, uint64_t a, uint64_t b, uint64_t c)

static unsigned at_most(uint64_t value, unsigned limit)
{
    return (uint32_t)value < limit ? (uint32_t)value : limit;
}

/* shf: 64 bits, the second source above the first, moved and cut out. */
REF(shf_l)
{
    unsigned by = row->op ? (uint32_t)c & 31 : at_most(c, 32);
    unsigned __int128 both = (unsigned __int128)((uint64_t)(uint32_t)b << 32 | (uint32_t)a) << by;
    return (uint64_t)(both >> 32);
}
REF(shf_r)
{
    unsigned by = row->op ? (uint32_t)c & 31 : at_most(c, 32);
    return ((uint64_t)(uint32_t)b << 32 | (uint32_t)a) >> by;
}

/* prmt: each nibble of a selector picks a byte, or its sign. */
static uint32_t permuted(uint64_t bytes, const unsigned picks[4], uint32_t signs)
{
    uint32_t result = 0;
    for (unsigned i = 0; i < 4; i++) {
        uint32_t byte = (uint32_t)(bytes >> 8 * picks[i]) & 0xff;
        byte = signs >> i & 1 ? (byte & 0x80 ? 0xff : 0) : byte;
        result |= byte << 8 * i;
    }
    return result;
}

REF(prmt)
{
    uint64_t bytes = (uint64_t)(uint32_t)b << 32 | (uint32_t)a;
    unsigned s = c & 3, picks[4];
    uint32_t signs = 0;
    for (unsigned i = 0; i < 4; i++) {
        const unsigned of_mode[] = {
            (unsigned)(c >> 4 * i) & 7, (s + i) & 7, (s - i) & 7, s, i > s ? i : s, i < s ? i : s,
            (s & 1) * 2 + i % 2};
        picks[i] = of_mode[row->op];
        signs |= row->op == 0 ? (uint32_t)(c >> (4 * i + 3) & 1) << i : 0;
    }
    return permuted(bytes, picks, signs);
}

/* bfi: the lower `length` bits of a, put into b. */
static uint64_t inserted(unsigned bits, uint64_t a, uint64_t b, unsigned at, unsigned length)
{
    for (unsigned i = 0; i < length && at + i < bits; i++) {
        b &= ~(1ull << (at + i));
        b |= (a >> i & 1) << (at + i);
    }
    return b;
}
REF(bfi)
{
    /* As on an H100, a position is of 8 bits in a field of 32 only. */
    return inserted(row->bits, a, b, row->bits == 64 ? at_most(c, 64) : c & 0xff, 13);
}

REF(bmsk)
{
    unsigned from = row->op ? (uint32_t)a & 31 : at_most(a, 32);
    unsigned length = row->op ? (uint32_t)b & 31 : at_most(b, 32);
    return inserted(32, UINT64_MAX, 0, from, length);
}

REF(szext)
{
    unsigned width = row->op ? (uint32_t)b & 31 : at_most(b, 32);
    uint64_t low = (uint32_t)a & ((1ull << width) - 1);
    bool fill = row->is_signed && width && (a >> (width - 1) & 1);
    return fill ? low | ~((1ull << width) - 1) : low;
}

/* fns: counts set bits from bit b on, upwards or downwards. */
REF(fns)
{
    int left = row->op ? 2 : -1, at = (int)(b & 31);
    for (; at >= 0 && at<32; at += left> 0 ? 1 : -1) {
        if (!(a >> at & 1))
            continue;
        left += left > 0 ? -1 : 1;
        if (left == 0)
            return (uint64_t)at;
    }
    return UINT32_MAX;
}
static bool is_bit(const struct row *row, uint64_t a, uint64_t b)
{
    return (uint32_t)b < 32;
}

REF(lop3)
{
    uint32_t result = 0;
    for (unsigned i = 0; i < 32; i++) {
        unsigned which = (unsigned)((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1));
        result |= (row->op >> which & 1) << i;
    }
    return result;
}

static int64_t part(uint64_t x, unsigned at, unsigned bits, bool is_signed)
{
    uint64_t moved = (uint64_t)(uint32_t)x << (64 - bits - at);
    return is_signed ? (int64_t)moved >> (64 - bits) : (int64_t)(moved >> (64 - bits));
}

/* dp4a and dp2a; op has a bit for each source that is signed, and one for .hi. */
REF(dp4a)
{
    uint64_t sum = c;
    for (unsigned i = 0; i < 32; i += 8)
        sum += (uint64_t)(part(a, i, 8, row->op & 1) * part(b, i, 8, row->op & 2));
    return sum;
}
REF(dp2a)
{
    uint64_t sum = c;
    for (unsigned i = 0; i < 2; i++)
        sum += (uint64_t)(part(a, 16 * i, 16, row->op & 1) *
                          part(b, 8 * i + (row->op & 4 ? 16 : 0), 8, row->op & 2));
    return sum;
}

/* mul24, mad24: of 24 bits each; .hi are the upper 32 of 48. */
REF(mad24)
{
    int64_t product = part(a, 0, 24, row->is_signed) * part(b, 0, 24, row->is_signed);
    return (uint64_t)(row->op ? product >> 16 : product) + (row->sizes[3] ? c : 0);
}

/* Integers to integers: op says the source's size and sign, the row's the destination's. */
static int64_t extended(uint64_t x, unsigned bits, bool is_signed)
{
    uint64_t moved = x << (64 - bits);
    return is_signed ? (int64_t)moved >> (64 - bits) : (int64_t)(moved >> (64 - bits));
}
REF(cvt_sat)
{
    unsigned bits = row->op & 0x7f;
    bool is_signed = row->op >> 7;
    __int128 x = is_signed ? (__int128)extended(a, bits, true)
                           : (__int128)(uint64_t)extended(a, bits, false);
    __int128 low = row->is_signed ? -((__int128)1 << (row->bits - 1)) : 0;
    __int128 high = ((__int128)1 << (row->bits - row->is_signed)) - 1;
    return (uint64_t)(x < low ? low : x > high ? high : x);
}

#define ROW3(name, fn, ...)                                                                 \
    {                                                                                       \
        .opcode = name, .sizes = {32, 32, 32, 32}, .bits = 32, .reference = fn, __VA_ARGS__ \
    }
#define ROW2(name, fn, ...)                                                             \
    {                                                                                   \
        .opcode = name, .sizes = {32, 32, 32}, .bits = 32, .reference = fn, __VA_ARGS__ \
    }
#define CVT(name, d, d_signed, a, a_signed)                                                \
    {                                                                                      \
        .opcode = "cvt.sat." name, .sizes = {(d) < 16 ? 16 : (d), (a)}, .bits = (d),       \
        .is_signed = (d_signed), .op = (a) | ((a_signed) ? 0x80 : 0), .reference = cvt_sat \
    }

static const struct row rows[] = {
    ROW3("shf.l.clamp.b32", shf_l, .op = 0),
    ROW3("shf.l.wrap.b32", shf_l, .op = 1),
    ROW3("shf.r.clamp.b32", shf_r, .op = 0),
    ROW3("shf.r.wrap.b32", shf_r, .op = 1),
    ROW3("prmt.b32", prmt, .op = 0),
    ROW3("prmt.b32.f4e", prmt, .op = 1),
    ROW3("prmt.b32.b4e", prmt, .op = 2),
    ROW3("prmt.b32.rc8", prmt, .op = 3),
    ROW3("prmt.b32.ecl", prmt, .op = 4),
    ROW3("prmt.b32.ecr", prmt, .op = 5),
    ROW3("prmt.b32.rc16", prmt, .op = 6),
    ROW3("bfi.b32", bfi, .last = "13"),
    {.opcode = "bfi.b64", .sizes = {64, 64, 64, 32}, .bits = 64, .last = "13", .reference = bfi},
    ROW2("bmsk.clamp.b32", bmsk, .op = 0),
    ROW2("bmsk.wrap.b32", bmsk, .op = 1),
    ROW2("szext.clamp.u32", szext, .op = 0),
    ROW2("szext.wrap.u32", szext, .op = 1),
    ROW2("szext.clamp.s32", szext, .op = 0, .is_signed = true),
    ROW2("szext.wrap.s32", szext, .op = 1, .is_signed = true),
    ROW2("fns.b32", fns, .op = 1, .last = "2", .defined = is_bit),
    ROW2("fns.b32", fns, .op = 0, .last = "-1", .defined = is_bit),
    ROW3("lop3.b32", lop3, .op = 0x96, .last = "0x96"),
    ROW3("lop3.b32", lop3, .op = 0xe8, .last = "0xe8"),
    ROW3("lop3.b32", lop3, .op = 0x1d, .last = "0x1d"),
    ROW3("dp4a.u32.u32", dp4a, .op = 0),
    ROW3("dp4a.s32.u32", dp4a, .op = 1),
    ROW3("dp4a.u32.s32", dp4a, .op = 2),
    ROW3("dp4a.s32.s32", dp4a, .op = 3),
    ROW3("dp2a.lo.u32.u32", dp2a, .op = 0),
    ROW3("dp2a.lo.s32.u32", dp2a, .op = 1),
    ROW3("dp2a.lo.u32.s32", dp2a, .op = 2),
    ROW3("dp2a.lo.s32.s32", dp2a, .op = 3),
    ROW3("dp2a.hi.u32.u32", dp2a, .op = 4),
    ROW3("dp2a.hi.s32.s32", dp2a, .op = 7),
    ROW2("mul24.lo.u32", mad24, .op = 0),
    ROW2("mul24.lo.s32", mad24, .op = 0, .is_signed = true),
    ROW2("mul24.hi.u32", mad24, .op = 1),
    ROW2("mul24.hi.s32", mad24, .op = 1, .is_signed = true),
    ROW3("mad24.lo.u32", mad24, .op = 0),
    ROW3("mad24.lo.s32", mad24, .op = 0, .is_signed = true),
    CVT("u16.s32", 16, false, 32, true),
    CVT("s16.u32", 16, true, 32, false),
    CVT("u32.s16", 32, false, 16, true),
    CVT("s32.u64", 32, true, 64, false),
    CVT("u64.s32", 64, false, 32, true),
    CVT("s64.u64", 64, true, 64, false),
    CVT("u64.s64", 64, false, 64, true),
    CVT("u32.u64", 32, false, 64, false),
};

static void test_rows(void **state)
{
    rows_check(rows, sizeof(rows) / sizeof(rows[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
