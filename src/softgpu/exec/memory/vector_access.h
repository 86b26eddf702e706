/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lane's vector (.v2, .v4) is one access to memory, as on the hardware, so no other thread ever
 * sees half of it. Lock-free algorithms rely on that: CUB's scans keep a status beside its value in
 * one vector.
 *
 * So vectors move whole between memory and a buffer of the warp's vectors, lane by lane. Neighbors
 * in memory go in moves as wide as the CPU has. Only in the buffer they are taken apart into
 * elements, or put together from them.
 *
 * To the CPU an aligned move of up to 8 bytes is one access, and one of 16 bytes is where
 * wide_access.h says so. No manual promises as much of the parts of a wider move, but CPUs make
 * them of aligned parts of at least 16 bytes. Only weak accesses, which must not race anyway, use
 * them. Vectors of 32 bytes are two accesses.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "fast_path.h"
#include "warp_state.h"
#include "wide_access.h"

#define MAX_VECTOR 32

/* Part of three copies of the handler, so that in each the compiler knows the strides. */
#define KNOWS_WIDTH __attribute__((always_inline)) static inline

/* The vectors of all lanes, one behind the other. */
struct vectors {
    unsigned char bytes[LANES * MAX_VECTOR] __attribute__((aligned(64)));
};

#if defined(__AVX512F__)
#define ROW_MOVE 64
#elif defined(__AVX2__)
#define ROW_MOVE 32
#else
#define ROW_MOVE 16
#endif
typedef long long row_move __attribute__((vector_size(ROW_MOVE), aligned(1), may_alias));

KNOWS_WIDTH void read_row(struct vectors *vectors, const unsigned char *from, unsigned size)
{
    for (unsigned at = 0; at < LANES * size; at += ROW_MOVE)
        *(row_move *)(vectors->bytes + at) = *(const volatile row_move *)(from + at);
}

KNOWS_WIDTH void write_row(unsigned char *to, const struct vectors *vectors, unsigned size)
{
    for (unsigned at = 0; at < LANES * size; at += ROW_MOVE)
        *(volatile row_move *)(to + at) = *(const row_move *)(vectors->bytes + at);
}

/* One lane's vector, from memory aligned to its size. */
KNOWS_WIDTH void read_vector(unsigned char *to, const unsigned char *from, unsigned size,
                             bool locked)
{
    if (size == 2)
        *(uint16_t *)to = *(const volatile uint16_t *)from;
    else if (size == 4)
        *(uint32_t *)to = *(const volatile uint32_t *)from;
    else if (size == 8)
        *(uint64_t *)to = *(const volatile uint64_t *)from;
    for (unsigned at = 0; size >= 16 && at < size; at += 16) {
        if (locked)
            wide_load_locked(to + at, from + at);
        else
            wide_load(to + at, from + at);
    }
}

KNOWS_WIDTH void write_vector(unsigned char *to, const unsigned char *from, unsigned size,
                              bool locked)
{
    if (size == 2)
        *(volatile uint16_t *)to = *(const uint16_t *)from;
    else if (size == 4)
        *(volatile uint32_t *)to = *(const uint32_t *)from;
    else if (size == 8)
        *(volatile uint64_t *)to = *(const uint64_t *)from;
    for (unsigned at = 0; size >= 16 && at < size; at += 16) {
        if (locked)
            wide_store_locked(to + at, from + at);
        else
            wide_store(to + at, from + at);
    }
}

/* Groups of lanes, weak: each a row of vectors, or one for all of its lanes. */
KNOWS_WIDTH void read_groups(struct vectors *vectors, const struct fast_groups *groups,
                             unsigned size)
{
    unsigned char *to = vectors->bytes;
    for (unsigned lane = 0; lane < LANES; lane++) {
        unsigned group = lane / GROUP;
        const unsigned char *from = groups->at[group];
        read_vector(to + lane * size, groups->same[group] ? from : from + lane % GROUP * size, size,
                    false);
    }
}

/* In the order of lanes: where some of them meet, the last one's vector stays. */
KNOWS_WIDTH void write_groups(const struct fast_groups *groups, const struct vectors *vectors,
                              unsigned size)
{
    for (unsigned lane = 0; lane < LANES; lane++) {
        unsigned group = lane / GROUP;
        unsigned char *to = groups->at[group];
        write_vector(groups->same[group] ? to : to + lane % GROUP * size,
                     vectors->bytes + lane * size, size, false);
    }
}

/* Whether strong accesses of this size need the lock of wide_access.h. */
static inline bool needs_lock(const struct insn *insn, unsigned size)
{
    return size >= 16 && !wide_moves_are_atomic() &&
           (insn->flags & (INSN_SYNCHRONIZES | INSN_FENCE_BEFORE));
}

KNOWS_WIDTH void read_each(struct warp *warp, const struct insn *insn, struct vectors *vectors,
                           unsigned size)
{
    bool locked = needs_lock(insn, size);
    for (unsigned lane = 0; lane < LANES; lane++)
        read_vector(vectors->bytes + lane * size,
                    (const unsigned char *)(uintptr_t)warp->address[lane], size, locked);
}

KNOWS_WIDTH void write_each(struct warp *warp, const struct insn *insn,
                            const struct vectors *vectors, unsigned size)
{
    bool locked = needs_lock(insn, size);
    EACH_ACTIVE_LANE
    write_vector((unsigned char *)(uintptr_t)warp->address[lane], vectors->bytes + lane * size,
                 size, locked);
}
