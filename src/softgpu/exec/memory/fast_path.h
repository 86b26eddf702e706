/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two shapes that most accesses of a full warp have, found without writing down 32 addresses:
 * lanes that touch neighbors in an array, and lanes that all touch the same place. Everything
 * else, and everything that may be wrong, is left to translate().
 */
#pragma once

#include "block_state.h"
#include "lane_any.h"

enum fast_shape {
    FAST_NONE,
    FAST_ROW,  /* lane l's element is the l-th of an array */
    FAST_SAME, /* every lane's element is the same */
};

#define FAST_SHAPE(name, type, any)                                              \
    /* Whether each lane's value is `step` more than that of the lane before. */ \
    static inline bool name##_steps(const type *base, type step)                 \
    {                                                                            \
        type apart[LANES] __attribute__((aligned(64)));                          \
        for (unsigned lane = 0; lane < LANES; lane++)                            \
            apart[lane] = base[lane] ^ (base[0] + (type)lane * step);            \
        return !any(apart);                                                      \
    }                                                                            \
    static inline enum fast_shape name(const type *base, unsigned size)          \
    {                                                                            \
        if (base[LANES - 1] == base[0])                                          \
            return name##_steps(base, 0) ? FAST_SAME : FAST_NONE;                \
        return name##_steps(base, size) ? FAST_ROW : FAST_NONE;                  \
    }
FAST_SHAPE(fast_wide_shape, uint64_t, any_set64)
FAST_SHAPE(fast_narrow_shape, uint32_t, any_set32)
#undef FAST_SHAPE

/*
 * Rows of an instruction tend to follow each other at one distance, and too far apart for the CPU's
 * prefetchers, for another block's rows lie between. So we fetch the one after the next.
 */
static inline void fast_prefetch(struct range_cache *range, uint64_t at, unsigned extent)
{
    uint64_t ahead = at + 3 * (at - range->last);
    range->last = at;
    for (unsigned line = 0; line < extent; line += 64)
        __builtin_prefetch((const void *)(uintptr_t)(ahead + line));
}

/* Bytes at a device address that this instruction has touched before. */
static inline unsigned char *fast_global(struct warp *warp, const struct insn *insn, uint64_t at,
                                         unsigned extent, unsigned access)
{
    struct range_cache *range = &warp->ranges[range_slot(insn)];
    if (range->generation != __atomic_load_n(warp->generation, __ATOMIC_ACQUIRE) ||
        (range->access & access) != access || at - range->start >= range->size ||
        extent > range->size - (at - range->start))
        return NULL;
    if (access == SG_READ && extent >= 64)
        fast_prefetch(range, at, extent);
    return (unsigned char *)(uintptr_t)at;
}

static inline unsigned char *fast_shared(const struct warp *warp, uint64_t at, unsigned extent)
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
__attribute__((always_inline)) static inline enum fast_shape
fast_translate(struct warp *warp, const struct insn *insn, unsigned size, unsigned access,
               unsigned char **ret_at)
{
    const unsigned slow = INSN_SYNCHRONIZES | INSN_FENCE_BEFORE;
    if (warp->active != FULL_MASK || (insn->flags & slow) || insn->space == PTX_LOCAL ||
        insn->space == PTX_PARAM)
        return FAST_NONE;
    bool is_wide = insn->flags & INSN_WIDE_ADDRESS;
    const uint64_t *wide = reg(warp, insn->a);
    const uint32_t *narrow = reg(warp, insn->a);
    uint64_t at = is_wide ? wide[0] + insn->imm : (uint32_t)(narrow[0] + (uint32_t)insn->imm);
    enum fast_shape shape = is_wide ? fast_wide_shape(wide, size) : fast_narrow_shape(narrow, size);
    unsigned extent = shape == FAST_ROW ? LANES * size : size;
    if (shape == FAST_NONE || (at & (size - 1)))
        return FAST_NONE;
    *ret_at = insn->space == PTX_SHARED ? fast_shared(warp, at, extent)
                                        : fast_global(warp, insn, at, extent, access);
    return *ret_at ? shape : FAST_NONE;
}
