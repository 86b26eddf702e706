/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The graph batches of one stream. For some lengths there is one whose nodes are set to whatever
 * launches come. Others, of any length, are kept for sequences that a training repeats. Each is
 * created when it is wanted repeatedly, because that takes as long as a hundred launches. All
 * functions are the session thread's.
 */
#pragma once

#include "graph_batch.h"

#define GRAPH_BATCH_MAX 16u

/* Batches of 16, 8, 4 and 2 launches, and last a kernel with the fence behind it. */
#define GRAPH_BATCH_QUEUED_KINDS 4u
#define GRAPH_BATCH_FENCED GRAPH_BATCH_QUEUED_KINDS
#define GRAPH_BATCH_KINDS (GRAPH_BATCH_QUEUED_KINDS + 1)

struct device;
struct kept_batches;

struct graph_batches {
    const struct device *device;
    struct graph_batch *batch[GRAPH_BATCH_KINDS];
    unsigned wanted[GRAPH_BATCH_KINDS];
    struct kept_batches *kept; /* NULL: none was wanted yet */
    struct node_priorities priorities;
    bool unavailable; /* the driver has no graph batches for this stream */
};

/* Launches the first of `count` kernels as one batch. Returns how many, or 0 when they have to be
 * launched one by one. The caller has called stream_begin_brief(). */
unsigned graph_batches_launch(struct graph_batches *batches, CUstream stream,
                              const struct launch *launches, unsigned count);

/* Launches all of the kernels as the batch that is kept for the sequence of their functions. False
 * when there is none yet. */
bool graph_batches_launch_kept(struct graph_batches *batches, CUstream stream,
                               const struct launch *launches, unsigned count);

/* Launches a kernel, and behind it the one that writes its fence, by one call of the driver. False
 * when that needs two calls. */
bool graph_batches_launch_fenced(struct graph_batches *batches, CUstream stream,
                                 const struct launch launches[2]);

/* A module is about to end: destroys the batches that use its functions. */
void graph_batches_forget_module(struct graph_batches *batches, const struct module *module);

/* Destroys all batches; those that still run go when they are done. New ones may be created
 * afterwards. */
void graph_batches_fini(struct graph_batches *batches);
