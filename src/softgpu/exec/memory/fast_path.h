/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two shapes that most accesses of a full warp have, found without writing down 32 addresses:
 * lanes that touch neighbours in an array, and lanes that all touch the same place. Everything
 * else, and everything that may be wrong, is left to locate().
 */
#pragma once

#include "block_state.h"
#include "lane_any.h"

enum quick_shape {
    QUICK_NONE,
    QUICK_ROW,  /* lane l's element is the l-th of an array */
    QUICK_SAME, /* every lane's element is the same */
};

#define QUICK_SHAPE(name, type, any)                                             \
    /* Whether each lane's value is `step` more than that of the lane before. */ \
    static inline bool name##_steps(const type *base, type step)                 \
    {                                                                            \
        type apart[LANES] __attribute__((aligned(64)));                          \
        for (unsigned lane = 0; lane < LANES; lane++)                            \
            apart[lane] = base[lane] ^ (base[0] + (type)lane * step);            \
        return !any(apart);                                                      \
    }                                                                            \
    static inline enum quick_shape name(const type *base, unsigned size)         \
    {                                                                            \
        if (base[LANES - 1] == base[0])                                          \
            return name##_steps(base, 0) ? QUICK_SAME : QUICK_NONE;              \
        return name##_steps(base, size) ? QUICK_ROW : QUICK_NONE;                \
    }
QUICK_SHAPE(quick_wide_shape, uint64_t, any_set64)
QUICK_SHAPE(quick_narrow_shape, uint32_t, any_set32)
#undef QUICK_SHAPE

/*
 * Rows of an instruction tend to follow each other at one distance, and too far apart for the CPU's
 * prefetchers, for another block's rows lie between. So we fetch the one after the next.
 */
static inline void quick_prefetch(struct range_cache *range, uint64_t at, unsigned extent)
{
    uint64_t ahead = at + 3 * (at - range->last);
    range->last = at;
    for (unsigned line = 0; line < extent; line += 64)
        __builtin_prefetch((const void *)(uintptr_t)(ahead + line));
}

/* Bytes at a device address that this instruction has touched before. */
static inline unsigned char *quick_global(struct warp *warp, const struct insn *insn, uint64_t at,
                                          unsigned extent, unsigned access)
{
    struct range_cache *range = &warp->ranges[range_slot(insn)];
    if (range->generation != __atomic_load_n(warp->generation, __ATOMIC_ACQUIRE) ||
        (range->access & access) != access || at - range->start >= range->size ||
        extent > range->size - (at - range->start))
        return NULL;
    if (access == SG_READ && extent >= 64)
        quick_prefetch(range, at, extent);
    return (unsigned char *)(uintptr_t)at;
}

static inline unsigned char *quick_shared(const struct warp *warp, uint64_t at, unsigned extent)
{
    const struct block *block = warp->block;
    if (at >= block->shared_size || extent > block->shared_size - at)
        return NULL;
    return block->shared + at;
}

/*
 * Where lane 0's `size` bytes are, checked with those of all others; sizes are powers of two. It is
 * part of each handler, whose size is known to the compiler: the steps then are constants.
 */
__attribute__((always_inline)) static inline enum quick_shape
quick_locate(struct warp *warp, const struct insn *insn, unsigned size, unsigned access,
             unsigned char **ret_at)
{
    const unsigned slow = INSN_SYNCHRONISES | INSN_FENCE_BEFORE;
    if (warp->active != FULL_MASK || (insn->flags & slow) || insn->space == PTX_LOCAL ||
        insn->space == PTX_PARAM)
        return QUICK_NONE;
    bool is_wide = insn->flags & INSN_WIDE_ADDRESS;
    const uint64_t *wide = reg(warp, insn->a);
    const uint32_t *narrow = reg(warp, insn->a);
    uint64_t at = is_wide ? wide[0] + insn->imm : (uint32_t)(narrow[0] + (uint32_t)insn->imm);
    enum quick_shape shape =
        is_wide ? quick_wide_shape(wide, size) : quick_narrow_shape(narrow, size);
    unsigned extent = shape == QUICK_ROW ? LANES * size : size;
    if (shape == QUICK_NONE || (at & (size - 1)))
        return QUICK_NONE;
    *ret_at = insn->space == PTX_SHARED ? quick_shared(warp, at, extent)
                                        : quick_global(warp, insn, at, extent, access);
    return *ret_at ? shape : QUICK_NONE;
}
