/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cp.async. The copy is made at once. On a GPU it takes longer than other warps need to read what
 * lies there, and cuda::pipeline of CUDA 11.8 relies on that. So a warp that has seen a phase of an
 * mbarrier end lets the other warps see it, too, before it copies.
 *
 * Lanes that copy all of their bytes do so together, as a vector load and a vector store do. Lanes
 * that copy fewer bytes, the rest being zero, must not access the others. A lane that copies
 * nothing may have any address, as programs use beyond the edge of a matrix.
 */
#include "async_copy.h"

#include <string.h>

#include "isa.h"
#include "sg_space.h"
#include "translate.h"
#include "vector_access.h"
#include "warp.h"

KNOWS_WIDTH bool fetch(struct warp *warp, const struct insn *insn, struct vectors *vectors,
                       unsigned size)
{
    struct fast_groups groups;
    unsigned char *at;
    enum fast_shape shape = fast_translate(warp, insn, size, SG_READ, &at, &groups);
    if (shape == FAST_ROW)
        read_row(vectors, at, size);
    else if (shape == FAST_GROUPS)
        read_groups(vectors, &groups, size);
    else if (translate(warp, insn, size, size, SG_READ))
        read_each(warp, insn, vectors, size);
    else
        return false;
    return true;
}

KNOWS_WIDTH void put(struct warp *warp, const struct insn *insn, const struct vectors *vectors,
                     unsigned size)
{
    struct fast_groups groups;
    unsigned char *at;
    enum fast_shape shape = fast_translate(warp, insn, size, SG_WRITE, &at, &groups);
    if (shape == FAST_ROW)
        write_row(at, vectors, size);
    else if (shape == FAST_GROUPS)
        write_groups(&groups, vectors, size);
    else if (translate(warp, insn, size, size, SG_WRITE))
        write_each(warp, insn, vectors, size);
}

KNOWS_WIDTH void copy_whole(struct warp *warp, const struct insn *insn, unsigned size)
{
    struct vectors vectors;
    if (fetch(warp, insn + 1, &vectors, size))
        put(warp, insn, &vectors, size);
}

/* All active lanes copy this many of their bytes. One lane only, unless that is none or all. */
static void copy_active(struct warp *warp, const struct insn *insn, unsigned valid)
{
    unsigned size = insn->width;
    if (valid == size) {
        if (size == 4)
            copy_whole(warp, insn, 4);
        else if (size == 8)
            copy_whole(warp, insn, 8);
        else
            copy_whole(warp, insn, 16);
        return;
    }
    unsigned char bytes[16] = {0};
    if (valid) {
        if (!translate(warp, insn + 1, valid, size, SG_READ))
            return;
        memcpy(bytes, (const void *)(uintptr_t)warp->address[0], valid);
    }
    if (!translate(warp, insn, size, size, SG_WRITE))
        return;
    EACH_ACTIVE_LANE
    memcpy((void *)(uintptr_t)warp->address[lane], bytes, size);
}

/* The lanes that copy together with this one. */
static uint32_t companions(uint32_t lanes, unsigned first, const uint32_t *counts, unsigned size)
{
    uint32_t count = counts[first], same = 0;
    if (count > 0 && count < size)
        return 1u << first;
    for (unsigned lane = first; lane < LANES; lane++)
        same |= (uint32_t)(count ? counts[lane] >= size : counts[lane] == 0) << lane;
    return same & lanes;
}

/* The warp comes back to the instruction in its next turn. */
static void let_others_read(struct warp *warp, const struct insn *insn)
{
    warp->saw_phase_end = false;
    warp->pc = insn;
    warp_leave(warp, WARP_YIELD);
}

/* cp.async: to a of imm from what the nop behind carries; b says how many of the bytes are copied,
 * the rest is zero. */
static void run_copy_async(struct warp *warp, const struct insn *insn)
{
    const uint32_t *counts = reg(warp, insn->b);
    unsigned size = insn->width;
    uint32_t active = warp->active;
    if (warp->saw_phase_end) {
        let_others_read(warp, insn);
        return;
    }
    for (uint32_t rest = active; rest && warp->event != WARP_FAULT;) {
        unsigned first = (unsigned)__builtin_ctz(rest);
        uint32_t together = companions(rest, first, counts, size);
        if (together != active)
            warp_set_active(warp, together);
        copy_active(warp, insn, counts[first] < size ? counts[first] : size);
        rest &= ~together;
        if (together != active)
            warp_set_active(warp, active);
    }
}

const handler_fn ISA_NAME(copy_async) = run_copy_async;
