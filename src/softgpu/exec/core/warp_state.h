/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a warp: its registers, and the program counter of each lane.
 *
 * Lanes that stand at the same instruction are a divergent path, or path for short. The running
 * path is in the warp itself, and the others wait in paths[], sorted. The lowest program counter
 * runs first, so paths meet where control flow joins. Only the host thread that runs the warp's
 * block accesses it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "insn.h"
#include "lanes.h"

struct path {
    const struct insn *pc;
    uint32_t mask;
};

enum warp_event {
    WARP_RUNS,
    WARP_PATH_ENDED, /* the running path is gone: exited, blocked */
    WARP_YIELD,      /* used up its budget */
    WARP_FAULT,
};

struct range_cache {
    uint64_t start;
    uint64_t size;
    uint64_t generation;
    uint64_t last; /* the start of the instruction's last row */
    unsigned access;
};

/* Ranges that a worker has met, by instruction: each tends to stay in one array. */
#define RANGE_CACHES 64
#define MAX_CALL_DEPTH 4096

static inline unsigned range_slot(const struct insn *insn)
{
    return (uintptr_t)insn / sizeof(*insn) % RANGE_CACHES;
}

struct warp {
    unsigned char *regs;
    const struct insn *pc;
    const struct insn *stop; /* the running path waits here for others; NULL once event is set */
    uint32_t active;         /* lanes of the running path */
    uint32_t alive;          /* lanes that exist and have not exited */
    bool full;               /* every lane is active or dead: handlers need not look at the mask */
    enum warp_event event;
    int32_t budget;
    uint32_t carry; /* the condition code's carry flag, a lane a bit */
    struct block *block;
    const struct insn *code;    /* of the program */
    struct range_cache *ranges; /* RANGE_CACHES, the worker's */
    const uint64_t *generation; /* of the space: older ranges say nothing */
    uint64_t local;             /* lane 0's local memory; the others follow at local_stride */
    uint64_t local_stride;
    uint32_t index;
    uint32_t path_count;
    uint32_t at_barrier;    /* lanes that wait at a barrier */
    uint32_t whole_barrier; /* and its number, if they came there together, all that are alive; */
    const struct insn *whole_pc; /* they go on here. NULL: blocked_pc and barrier_of say it */
    uint32_t at_sync;            /* lanes that wait for others at a warp-wide instruction */
    uint32_t at_cluster;         /* lanes that wait at the cluster's barrier */
    uint32_t cluster_arrived;    /* lanes that have come to it in this phase */
    uint64_t wgmma_groups;       /* committed so far */
    const struct insn *last;     /* the path that used up its budget: others first */
    bool forced;                 /* a warp-wide instruction must not wait again */
    bool saw_phase_end;          /* of an mbarrier, and has had no turn since: async_copy.c */
    bool out_of_order;           /* the running path is not the lowest */
    uint32_t *returns;           /* LANES entries a level */
    uint32_t returns_capacity;
    uint32_t depth[LANES];
    /* The fields above are cleared when a warp starts; the following ones are written before they
     * are read. */
    uint32_t lane_on[LANES] __attribute__((aligned(64)));
    uint64_t address[LANES] __attribute__((aligned(64))); /* the results of a memory access */
    struct path paths[LANES];                             /* lowest program counter last */
    const struct insn *blocked_pc[LANES];
    uint8_t barrier_of[LANES];
};

static inline void *reg(struct warp *warp, uint32_t offset)
{
    return warp->regs + offset;
}

static inline uint32_t *pred(struct warp *warp, uint32_t offset)
{
    return (uint32_t *)(warp->regs + offset);
}

#define EACH_ACTIVE_LANE                         \
    for (uint32_t rest = warp->active, lane = 0; \
         rest && (lane = (uint32_t)__builtin_ctz(rest), true); rest &= rest - 1)
