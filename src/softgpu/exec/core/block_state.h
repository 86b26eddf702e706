/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a block: its warps, its barriers, and the memory they share.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "grid_state.h"
#include "warp_state.h"

#define BARRIERS 16
#define MAX_WARPS 32

struct barrier {
    uint32_t expected; /* 0: every thread that is alive */
    uint32_t arrived[MAX_WARPS];
    uint32_t count; /* the results of bar.red */
    bool any;
    bool not_all;
    uint32_t last_count; /* the results of the last opening */
    bool last_any;
    bool last_all;
};

/* Memory for a block: its struct, warps, register files, local and shared memory. */
struct block_memory {
    unsigned char *bytes;
    size_t size;
    const struct sg_space *space; /* whose data may still be in it */
    uint64_t grid;                /* whose constants are still in it; 0: no grid's */
};

struct block {
    struct grid *grid;
    struct block *lead; /* the cluster's first, from which the others are linked */
    struct block *next;
    uint32_t rank;       /* in the cluster */
    bool cluster_in_use; /* of the lead: a thread has come to the cluster's barrier */
    uint32_t index[3];
    uint32_t warp_count;
    struct warp *warps;
    unsigned char *shared;
    uint32_t shared_size;
    struct block_memory memory;
    uint32_t sm;
    uint32_t turns;           /* that used up a warp's budget */
    uint32_t sleepers;        /* warps that began a long sleep in this turn */
    bool asleep;              /* all warps that could run did */
    uint32_t barriers_in_use; /* a bit each: some lane has come to it */
    /* The fields above are cleared when a block starts, a barrier at its first use. */
    struct barrier barriers[BARRIERS];
};

#define RESERVED_SHARED 1024
