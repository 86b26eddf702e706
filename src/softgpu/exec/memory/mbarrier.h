/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Barriers in shared memory (mbarrier), which count arrivals and bytes.
 *
 * The 64 bits are ours alone to read: programs keep them, and the states that arrivals return,
 * without looking inside.
 */
#pragma once

#include "warp_state.h"

enum mbarrier_op {
    MBARRIER_INIT,
    MBARRIER_INVALIDATE,
    MBARRIER_EXPECT,        /* more bytes before the phase may end */
    MBARRIER_COMPLETE,      /* bytes that have come */
    MBARRIER_ARRIVE,        /* b: how many */
    MBARRIER_ARRIVE_EXPECT, /* one arrival, and b more bytes */
    MBARRIER_CHECK,         /* nothing, of a barrier that must be one */
};

/* insn.width of an arrival */
enum {
    MBARRIER_DROPS = 1, /* later phases expect that many less */
};

/* So many bytes have come for the barrier in this memory. */
void mbarrier_complete(uint64_t *memory, uint32_t bytes);
/* d: the state, or none; b: the count. */
void run_mbarrier(struct warp *warp, const struct insn *insn);
/* d: a predicate; b: a state of 64 bits, or (mode) a parity. */
void run_mbarrier_test(struct warp *warp, const struct insn *insn);
/* d: the arrivals that were missing at state a. */
void run_mbarrier_pending(struct warp *warp, const struct insn *insn);
