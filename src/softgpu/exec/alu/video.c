/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The video instructions on packed bytes and halfwords: vadd4, vabsdiff2 and the like.
 *
 * No inner loop of programs uses them, so one function executes all, element by element.
 */
#include "video.h"

static int32_t packed_element(uint32_t packed, unsigned at, unsigned bits, bool is_signed)
{
    uint32_t moved = packed << (32 - bits - at);
    return is_signed ? (int32_t)moved >> (32 - bits) : (int32_t)(moved >> (32 - bits));
}

static int32_t compute(enum video_op op, int32_t a, int32_t b)
{
    switch (op) {
    case VIDEO_ADD:
        return a + b;
    case VIDEO_SUB:
        return a - b;
    case VIDEO_AVERAGE:
        return (a + b + (a + b >= 0)) >> 1;
    case VIDEO_DIFFERENCE:
        return a > b ? a - b : b - a;
    case VIDEO_MIN:
        return a < b ? a : b;
    case VIDEO_MAX:
        return a > b ? a : b;
    case VIDEO_EQ:
        return a == b;
    case VIDEO_NE:
        return a != b;
    case VIDEO_LT:
        return a < b;
    case VIDEO_LE:
        return a <= b;
    case VIDEO_GT:
        return a > b;
    default:
        return a >= b;
    }
}

static int32_t saturate(int32_t value, unsigned bits, bool is_signed)
{
    int32_t low = is_signed ? -(1 << (bits - 1)) : 0;
    int32_t high = is_signed ? (1 << (bits - 1)) - 1 : (1 << bits) - 1;
    return value < low ? low : value > high ? high : value;
}

static uint32_t apply_operation(const struct insn *insn, uint32_t a, uint32_t b, uint32_t c)
{
    unsigned bits = 32u / insn->width;
    uint32_t packed = 0, sum = c;
    for (unsigned at = 0; at < 32; at += bits) {
        int32_t value = compute((enum video_op)insn->mode,
                                packed_element(a, at, bits, insn->flags & VIDEO_SIGNED_A),
                                packed_element(b, at, bits, insn->flags & VIDEO_SIGNED_B));
        if (insn->flags & VIDEO_SATURATES)
            value = saturate(value, bits, insn->flags & VIDEO_SIGNED_D);
        sum += (uint32_t)value;
        packed |= ((uint32_t)value & (uint32_t)((1ull << bits) - 1)) << at;
    }
    return insn->flags & VIDEO_SUMS ? sum : packed;
}

void run_video(struct warp *warp, const struct insn *insn)
{
    const uint32_t *a = reg(warp, insn->a), *b = reg(warp, insn->b), *c = reg(warp, insn->c);
    uint32_t *d = reg(warp, insn->d);
    EACH_ACTIVE_LANE
    d[lane] = apply_operation(insn, a[lane], b[lane], c[lane]);
}
