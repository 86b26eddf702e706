/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of which the blocks, one warp each, run side by side on different multiprocessors.
 *
 * On the software GPU one host thread runs several multiprocessors, and takes whatever block is
 * next. So two blocks of a small grid may well share a thread and never race. Hence each block of a
 * large grid looks where it is. Half of the roles go to blocks on multiprocessors of even number,
 * half to those of odd number, which belong to different host threads. The blocks that find no role
 * wait a little, so that some remain for the other threads, and end. The blocks with a role meet at
 * a barrier in global memory before each round.
 *
 * It needs nothing of the software GPU, and does the same on any GPU.
 */
#pragma once

#include "check.h"

#define LANES 32

struct side_by_side {
    const char *name; /* in messages */
    unsigned roles;   /* how many blocks */
    unsigned rounds;
    /* All roles go to multiprocessors of even number: where these belong to one host thread the
     * blocks take turns, and change whenever one sleeps (nanosleep). */
    bool takes_turns;
    /*
     * PTX. %role, %lane, %round, %data and %results are at hand, and of scratch registers
     * %a..%d (b32), %la..%ld (b64), %p and %q (predicates).
     */
    const char *registers; /* further declarations */
    const char *before;
    const char *each; /* round */
    const char *after;
};

/* Memory that the kernel shares: filled from start, and what it holds at the end in its place. */
struct shared_area {
    void *bytes;
    size_t size;
};

/* With the program's argument --print: the text goes to standard output, and nothing runs. */
extern bool side_by_side_prints;

/* False when the blocks were never side by side or the kernel failed; a message says so. */
bool run_side_by_side(const struct side_by_side *test, struct shared_area data,
                      struct shared_area results);
