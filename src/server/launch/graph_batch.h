/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chains: graphs of the driver in which one kernel follows the other. To give a finished chain new
 * kernels and parameters and launch it costs about a third of launching the kernels one by one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "driver_table.h"

#define GRAPH_BATCH_MAX 16u

/* Lengths 16, 8 and 4, and last a kernel with the fence behind it. */
#define GRAPH_BATCH_QUEUED_KINDS 3u
#define GRAPH_BATCH_FENCED GRAPH_BATCH_QUEUED_KINDS
#define GRAPH_BATCH_KINDS (GRAPH_BATCH_QUEUED_KINDS + 1)

struct graph_batch;
struct function;
struct module;

/* Copied and compared as a whole. */
struct launch_shape {
    uint32_t grid[3], block[3], shared;
    uint32_t params_size;
};
_Static_assert(sizeof(struct launch_shape) == 8 * sizeof(uint32_t), "no padding");

/* What one kernel of it is launched with. */
struct launch {
    struct function *function;
    struct launch_shape shape;
    const void *params; /* laid out as the driver wants them */
    bool urgent;        /* before all else that waits for room on the GPU */
};

/* The graph_batches of one stream. They are made when a length is wanted again and again, for that
 * takes as long as a hundred launches. */
struct graph_batches {
    struct graph_batch *chain[GRAPH_BATCH_KINDS];
    unsigned wanted[GRAPH_BATCH_KINDS];
    /* Of their nodes, for a node knows nothing of the stream that it is launched into. */
    int priority, urgent_priority;
    bool never; /* this stream or driver does not have them */
};

/* Launches the first of `count` kernels as one chain: how many, or 0 when they have to be launched
 * one by one. The stream's context is current and its order is seen to. */
unsigned graph_batches_launch(struct graph_batches *graph_batches, CUstream stream,
                              const struct launch *launches, unsigned count);

/* Launches a kernel and behind it the one that writes its fence, as one chain: false when that has
 * to be done in two steps. To the driver it is one call where the two steps are two. */
bool graph_batches_launch_fenced(struct graph_batches *graph_batches, CUstream stream,
                                 const struct launch launches[2]);

/* A module is about to go: no chain must know its functions any more. */
void graph_batches_forget_module(struct graph_batches *graph_batches, const struct module *module);

/* Those that are still running go when they are done. Afterwards there are none, and new ones are
 * made when they are wanted. */
void graph_batches_fini(struct graph_batches *graph_batches);
