/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves without computing: predicates, packing, width.
 */
#include "moves.h"

static uint32_t predicate_result(const struct insn *insn, uint32_t a, uint32_t b)
{
    switch (insn->mode) {
    case PREDICATE_MOV:
        return a;
    case PREDICATE_NOT:
        return ~a;
    case PREDICATE_AND:
        return a & b;
    case PREDICATE_OR:
        return a | b;
    default:
        return a ^ b;
    }
}

static void set_predicate(struct warp *warp, uint32_t to, uint32_t value)
{
    if (to == NO_OPERAND)
        return;
    uint32_t *d = pred(warp, to);
    *d = (*d & ~warp->active) | (value & warp->active);
}

void run_predicate(struct warp *warp, const struct insn *insn)
{
    uint32_t a = *pred(warp, insn->a);
    uint32_t b = insn->b == NO_OPERAND ? 0 : *pred(warp, insn->b);
    set_predicate(warp, insn->d, predicate_result(insn, a, b));
}

/* d and p become a and b at once. */
void run_predicate_pair(struct warp *warp, const struct insn *insn)
{
    uint32_t first = *pred(warp, insn->a), second = *pred(warp, insn->b);
    set_predicate(warp, insn->d, first);
    set_predicate(warp, insn->p, second);
}

/* set: imm where the predicate a holds, zero elsewhere. */
void run_set_b32(struct warp *warp, const struct insn *insn)
{
    uint32_t chosen = *pred(warp, insn->a);
    uint32_t *to = reg(warp, insn->d);
    EACH_ACTIVE_LANE
    to[lane] = chosen >> lane & 1 ? (uint32_t)insn->imm : 0;
}

#define EACH_LANE_WRITES(expression)              \
    for (unsigned lane = 0; lane < LANES; lane++) \
        to[lane] = warp->active >> lane & 1 ? (expression) : to[lane];

void run_widen_u32(struct warp *warp, const struct insn *insn)
{
    const uint32_t *from = reg(warp, insn->a);
    uint64_t *to = reg(warp, insn->d);
    EACH_LANE_WRITES(from[lane])
}

void run_widen_s32(struct warp *warp, const struct insn *insn)
{
    const int32_t *from = reg(warp, insn->a);
    int64_t *to = reg(warp, insn->d);
    EACH_LANE_WRITES(from[lane])
}

void run_narrow(struct warp *warp, const struct insn *insn)
{
    const uint64_t *from = reg(warp, insn->a);
    uint32_t *to = reg(warp, insn->d);
    EACH_LANE_WRITES((uint32_t)from[lane])
}

void run_pack_2x16(struct warp *warp, const struct insn *insn)
{
    const uint32_t *low = reg(warp, insn->a);
    const uint32_t *high = reg(warp, insn->b);
    uint32_t *to = reg(warp, insn->d);
    EACH_LANE_WRITES((low[lane] & 0xffff) | high[lane] << 16)
}

void run_pack_2x32(struct warp *warp, const struct insn *insn)
{
    const uint32_t *low = reg(warp, insn->a);
    const uint32_t *high = reg(warp, insn->b);
    uint64_t *to = reg(warp, insn->d);
    EACH_LANE_WRITES(low[lane] | (uint64_t)high[lane] << 32)
}

void run_pack_4x16(struct warp *warp, const struct insn *insn)
{
    const uint32_t *a = reg(warp, insn->a);
    const uint32_t *b = reg(warp, insn->b);
    const uint32_t *c = reg(warp, insn->c);
    const uint32_t *e = reg(warp, insn->p);
    uint64_t *to = reg(warp, insn->d);
    EACH_LANE_WRITES((a[lane] & 0xffff) | (uint64_t)(b[lane] & 0xffff) << 16 |
                     (uint64_t)(c[lane] & 0xffff) << 32 | (uint64_t)e[lane] << 48)
}

static void unpack_elements(struct warp *warp, uint32_t offset, const uint64_t *value,
                            unsigned shift)
{
    if (offset == NO_OPERAND)
        return;
    uint32_t *to = reg(warp, offset);
    EACH_LANE_WRITES((uint32_t)(value[lane] >> shift))
}

/* Copies first: a destination may be the source. */
static void copy_wide(struct warp *warp, const struct insn *insn, uint64_t *value, bool wide)
{
    for (unsigned lane = 0; lane < LANES; lane++)
        value[lane] = wide ? ((const uint64_t *)reg(warp, insn->a))[lane]
                           : ((const uint32_t *)reg(warp, insn->a))[lane];
}

void run_unpack_2x16(struct warp *warp, const struct insn *insn)
{
    uint64_t value[LANES];
    copy_wide(warp, insn, value, false);
    unpack_elements(warp, insn->d, value, 0);
    unpack_elements(warp, insn->b, value, 16);
}

void run_unpack_2x32(struct warp *warp, const struct insn *insn)
{
    uint64_t value[LANES];
    copy_wide(warp, insn, value, true);
    unpack_elements(warp, insn->d, value, 0);
    unpack_elements(warp, insn->b, value, 32);
}

void run_unpack_4x16(struct warp *warp, const struct insn *insn)
{
    uint64_t value[LANES];
    copy_wide(warp, insn, value, true);
    unpack_elements(warp, insn->d, value, 0);
    unpack_elements(warp, insn->b, value, 16);
    unpack_elements(warp, insn->c, value, 32);
    unpack_elements(warp, insn->p, value, 48);
}
