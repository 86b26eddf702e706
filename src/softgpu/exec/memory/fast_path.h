/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common shapes of a full warp's accesses, detected without storing 32 addresses. Lanes access
 * neighbors in an array, or all the same address. Or groups of lanes do one of these, as in blocks
 * of 16 by 16 threads. All other accesses, and all invalid ones, are translate()'s.
 */
#pragma once

#include "block_state.h"
#include "lane_any.h"

enum fast_shape {
    FAST_NONE,
    FAST_ROW,  /* lane l's element is the l-th of an array */
    FAST_SAME, /* every lane's element is the same */
    FAST_GROUPS,
};

#define GROUP 8 /* lanes */
#define GROUPS (LANES / GROUP)
#define HALF (LANES / 2)

/* The elements of each group: a row of them, or one for all of its lanes. */
struct fast_groups {
    unsigned char *at[GROUPS];
    bool same[GROUPS];
    bool are_halves; /* the same holds for each half of the warp: two groups are one */
};

static inline bool fast_groups_are_same(const struct fast_groups *groups)
{
    bool same = true;
    for (unsigned group = 0; group < GROUPS; group++)
        same &= groups->same[group];
    return same;
}

/* How each shape's addresses are told from others; `size` is a constant where this is inlined. */
#if defined(__AVX512DQ__)
/* By hand, since the compiler would write the differences to the stack and read them back. */
static inline bool fast_narrow_steps(const uint32_t *base, uint32_t step)
{
    const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i from_first = _mm512_mullo_epi32(lane, _mm512_set1_epi32((int)step));
    const __m512i first = _mm512_set1_epi32((int)base[0]);
    const __m512i middle = _mm512_set1_epi32((int)(base[0] + 16 * step));
    __m512i lower = _mm512_sub_epi32(_mm512_load_si512(base), first);
    __m512i upper = _mm512_sub_epi32(_mm512_load_si512(base + 16), middle);
    return !(_mm512_cmpneq_epi32_mask(lower, from_first) |
             _mm512_cmpneq_epi32_mask(upper, from_first));
}

static inline bool fast_wide_steps(const uint64_t *base, uint64_t step)
{
    const __m512i lane = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i from_first = _mm512_mullo_epi64(lane, _mm512_set1_epi64((long long)step));
    unsigned apart = 0;
    for (unsigned i = 0; i < LANES; i += 8) {
        __m512i first = _mm512_set1_epi64((long long)(base[0] + i * step));
        __m512i distance = _mm512_sub_epi64(_mm512_load_si512(base + i), first);
        apart |= _mm512_cmpneq_epi64_mask(distance, from_first);
    }
    return !apart;
}

static inline bool fast_narrow_groups(const uint32_t *base, uint32_t size, bool *same)
{
    const __m512i lane = _mm512_set_epi32(7, 6, 5, 4, 3, 2, 1, 0, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i to_first = _mm512_set_epi32(8, 8, 8, 8, 8, 8, 8, 8, 0, 0, 0, 0, 0, 0, 0, 0);
    const __m512i to_last = _mm512_add_epi32(to_first, _mm512_set1_epi32(GROUP - 1));
    const __m512i steps = _mm512_mullo_epi32(lane, _mm512_set1_epi32((int)size));
    unsigned apart = 0;
    for (unsigned i = 0; i < LANES; i += 16) {
        __m512i found = _mm512_load_si512(base + i);
        __m512i first = _mm512_permutexvar_epi32(to_first, found);
        __mmask16 row = _mm512_cmpneq_epi32_mask(first, _mm512_permutexvar_epi32(to_last, found));
        __m512i expected = _mm512_mask_add_epi32(first, row, first, steps);
        apart |= _mm512_cmpneq_epi32_mask(found, expected);
        same[i / GROUP] = !(row & 1);
        same[i / GROUP + 1] = !(row >> GROUP & 1);
    }
    return !apart;
}

static inline bool fast_wide_groups(const uint64_t *base, uint64_t size, bool *same)
{
    const __m512i lane = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i steps = _mm512_mullo_epi64(lane, _mm512_set1_epi64((long long)size));
    unsigned apart = 0;
    for (unsigned i = 0; i < LANES; i += GROUP) {
        __m512i first = _mm512_set1_epi64((long long)base[i]);
        same[i / GROUP] = base[i + GROUP - 1] == base[i];
        __m512i expected = same[i / GROUP] ? first : _mm512_add_epi64(first, steps);
        apart |= _mm512_cmpneq_epi64_mask(_mm512_load_si512(base + i), expected);
    }
    return !apart;
}

/* With halves of a warp as groups. */
static inline bool fast_narrow_halves(const uint32_t *base, uint32_t size, bool *same)
{
    const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i steps = _mm512_mullo_epi32(lane, _mm512_set1_epi32((int)size));
    unsigned apart = 0;
    for (unsigned half = 0; half < 2; half++, base += HALF) {
        __m512i first = _mm512_set1_epi32((int)base[0]);
        same[half] = base[HALF - 1] == base[0];
        __m512i expected = same[half] ? first : _mm512_add_epi32(first, steps);
        apart |= _mm512_cmpneq_epi32_mask(_mm512_load_si512(base), expected);
    }
    return !apart;
}

static inline bool fast_wide_halves(const uint64_t *base, uint64_t size, bool *same)
{
    const __m512i lane = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i steps = _mm512_mullo_epi64(lane, _mm512_set1_epi64((long long)size));
    unsigned apart = 0;
    for (unsigned half = 0; half < 2; half++, base += HALF) {
        __m512i first = _mm512_set1_epi64((long long)base[0]);
        same[half] = base[HALF - 1] == base[0];
        uint64_t second = same[half] ? base[0] : base[0] + HALF / 2 * size;
        __m512i begin = same[half] ? first : _mm512_add_epi64(first, steps);
        __m512i end = _mm512_set1_epi64((long long)second);
        end = same[half] ? end : _mm512_add_epi64(end, steps);
        apart |= _mm512_cmpneq_epi64_mask(_mm512_load_si512(base), begin);
        apart |= _mm512_cmpneq_epi64_mask(_mm512_load_si512(base + HALF / 2), end);
    }
    return !apart;
}
#else
/* Narrower vectors gain nothing by halves. */
static inline bool fast_narrow_halves(const uint32_t *base, uint32_t size, bool *same)
{
    return false;
}

static inline bool fast_wide_halves(const uint64_t *base, uint64_t size, bool *same)
{
    return false;
}

#define FAST_STEPS(name, type, any)                                              \
    /* Whether each lane's value is `step` more than that of the lane before. */ \
    static inline bool name##_steps(const type *base, type step)                 \
    {                                                                            \
        type apart[LANES] __attribute__((aligned(64)));                          \
        for (unsigned lane = 0; lane < LANES; lane++)                            \
            apart[lane] = base[lane] ^ (base[0] + (type)lane * step);            \
        return !any(apart);                                                      \
    }                                                                            \
    static inline bool name##_groups(const type *base, type size, bool *same)    \
    {                                                                            \
        type apart[LANES] __attribute__((aligned(64)));                          \
        for (unsigned group = 0; group < GROUPS; group++) {                      \
            const type *first = base + group * GROUP;                            \
            same[group] = first[GROUP - 1] == first[0];                          \
            type step = same[group] ? 0 : size;                                  \
            for (unsigned i = 0; i < GROUP; i++)                                 \
                apart[group * GROUP + i] = first[i] ^ (first[0] + i * step);     \
        }                                                                        \
        return !any(apart);                                                      \
    }
FAST_STEPS(fast_wide, uint64_t, any_set64)
FAST_STEPS(fast_narrow, uint32_t, any_set32)
#undef FAST_STEPS
#endif

#define FAST_SHAPE(name, type)                                                  \
    static inline enum fast_shape name##_shape(const type *base, unsigned size) \
    {                                                                           \
        if (base[LANES - 1] == base[0])                                         \
            return name##_steps(base, 0) ? FAST_SAME : FAST_NONE;               \
        if (base[LANES - 1] != base[0] + (LANES - 1) * size)                    \
            return FAST_NONE;                                                   \
        return name##_steps(base, size) ? FAST_ROW : FAST_NONE;                 \
    }                                                                           \
    /* Whether the first two lanes may belong to a group. */                    \
    static inline bool name##_begins_group(const type *base, type size)         \
    {                                                                           \
        return base[1] == base[0] || base[1] == base[0] + size;                 \
    }
FAST_SHAPE(fast_wide, uint64_t)
FAST_SHAPE(fast_narrow, uint32_t)
#undef FAST_SHAPE

/*
 * Rows of an instruction tend to follow each other at one distance. It is too large for the CPU's
 * prefetchers, for another block's rows lie between. So we fetch the one after the next.
 */
static inline void fast_prefetch(struct range_cache *range, uint64_t at, unsigned extent)
{
    uint64_t ahead = at + 3 * (at - range->last);
    range->last = at;
    for (unsigned line = 0; line < extent; line += 64)
        __builtin_prefetch((const void *)(uintptr_t)(ahead + line));
}

/* Whether the instruction has accessed these bytes before, at a device address. */
static inline bool fast_knows(const struct warp *warp, const struct range_cache *range, uint64_t at,
                              unsigned extent, unsigned access)
{
    return range->generation == __atomic_load_n(warp->generation, __ATOMIC_ACQUIRE) &&
           (range->access & access) == access && at - range->start < range->size &&
           extent <= range->size - (at - range->start);
}

static inline unsigned char *fast_global(struct warp *warp, const struct insn *insn, uint64_t at,
                                         unsigned extent, unsigned access)
{
    struct range_cache *range = &warp->ranges[range_slot(insn)];
    if (!fast_knows(warp, range, at, extent, access))
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

/* The bytes that begin at a lane's address; NULL: not aligned, or not known. */
static inline unsigned char *fast_place(const struct warp *warp, const struct insn *insn,
                                        unsigned lane, unsigned size, unsigned extent,
                                        unsigned access)
{
    const uint64_t *wide = (const uint64_t *)(warp->regs + insn->a);
    const uint32_t *narrow = (const uint32_t *)(warp->regs + insn->a);
    bool is_wide = insn->flags & INSN_WIDE_ADDRESS;
    uint64_t at = is_wide ? wide[lane] + insn->imm : (uint32_t)(narrow[lane] + (uint32_t)insn->imm);
    if (at & (size - 1))
        return NULL;
    if (insn->space == PTX_SHARED)
        return fast_shared(warp, at, extent);
    const struct range_cache *range = &warp->ranges[range_slot(insn)];
    return fast_knows(warp, range, at, extent, access) ? (unsigned char *)(uintptr_t)at : NULL;
}

__attribute__((always_inline)) static inline bool
fast_translate_halves(const struct warp *warp, const struct insn *insn, unsigned size,
                      unsigned access, struct fast_groups *groups)
{
    bool same[2];
    if (insn->flags & INSN_WIDE_ADDRESS
            ? !fast_wide_halves((const uint64_t *)(warp->regs + insn->a), size, same)
            : !fast_narrow_halves((const uint32_t *)(warp->regs + insn->a), size, same))
        return false;
    for (unsigned half = 0; half < 2; half++) {
        unsigned extent = same[half] ? size : HALF * size;
        unsigned char *at = fast_place(warp, insn, half * HALF, size, extent, access);
        if (!at)
            return false;
        groups->at[2 * half] = at;
        groups->at[2 * half + 1] = same[half] ? at : at + GROUP * size;
        groups->same[2 * half] = groups->same[2 * half + 1] = same[half];
    }
    return true;
}

/* Any address that is not aligned, or not known, leaves it all to translate(). */
static inline bool fast_translate_groups(const struct warp *warp, const struct insn *insn,
                                         unsigned size, unsigned access, struct fast_groups *groups)
{
    if (insn->flags & INSN_WIDE_ADDRESS
            ? !fast_wide_groups((const uint64_t *)(warp->regs + insn->a), size, groups->same)
            : !fast_narrow_groups((const uint32_t *)(warp->regs + insn->a), size, groups->same))
        return false;
    for (unsigned group = 0; group < GROUPS; group++) {
        unsigned extent = groups->same[group] ? size : GROUP * size;
        groups->at[group] = fast_place(warp, insn, group * GROUP, size, extent, access);
        if (!groups->at[group])
            return false;
    }
    return true;
}

/*
 * The `size` bytes of lane 0, checked with those of all others; sizes are powers of two. It is part
 * of each handler, whose size is known to the compiler: the steps then are constants. groups: NULL,
 * or what FAST_GROUPS fills in.
 */
__attribute__((always_inline)) static inline enum fast_shape
fast_translate(struct warp *warp, const struct insn *insn, unsigned size, unsigned access,
               unsigned char **ret_at, struct fast_groups *groups)
{
    /* All of a block's shared memory is read and written by one host thread. */
    const unsigned slow =
        insn->space == PTX_SHARED ? INSN_FENCE_BEFORE : INSN_SYNCHRONIZES | INSN_FENCE_BEFORE;
    if (warp->active != FULL_MASK || (insn->flags & slow) || insn->space == PTX_LOCAL ||
        insn->space == PTX_PARAM)
        return FAST_NONE;
    bool is_wide = insn->flags & INSN_WIDE_ADDRESS;
    const uint64_t *wide = reg(warp, insn->a);
    const uint32_t *narrow = reg(warp, insn->a);
    uint64_t at = is_wide ? wide[0] + insn->imm : (uint32_t)(narrow[0] + (uint32_t)insn->imm);
    enum fast_shape shape = is_wide ? fast_wide_shape(wide, size) : fast_narrow_shape(narrow, size);
    unsigned extent = shape == FAST_ROW ? LANES * size : size;
    if (shape == FAST_NONE && groups &&
        (is_wide ? fast_wide_begins_group(wide, size) : fast_narrow_begins_group(narrow, size))) {
        groups->are_halves = fast_translate_halves(warp, insn, size, access, groups);
        return groups->are_halves || fast_translate_groups(warp, insn, size, access, groups)
                   ? FAST_GROUPS
                   : FAST_NONE;
    }
    if (shape == FAST_NONE || (at & (size - 1)))
        return FAST_NONE;
    *ret_at = insn->space == PTX_SHARED ? fast_shared(warp, at, extent)
                                        : fast_global(warp, insn, at, extent, access);
    return *ret_at ? shape : FAST_NONE;
}
