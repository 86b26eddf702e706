/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graph batches: graphs of the driver in which one kernel follows the other. To set the kernels and
 * parameters of an existing batch and to launch it costs about a third of launching the kernels one
 * by one. All functions are the session thread's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "driver_table.h"

#define GRAPH_BATCH_MAX 16u

/* Batches of 16, 8 and 4 launches, and last a kernel with the fence behind it. */
#define GRAPH_BATCH_QUEUED_KINDS 3u
#define GRAPH_BATCH_FENCED GRAPH_BATCH_QUEUED_KINDS
#define GRAPH_BATCH_KINDS (GRAPH_BATCH_QUEUED_KINDS + 1)

struct device;
struct graph_batch;
struct function;
struct module;

/* It is copied and compared as a whole. */
struct launch_shape {
    uint32_t grid[3], block[3], shared;
    uint32_t params_size;
};
_Static_assert(sizeof(struct launch_shape) == 8 * sizeof(uint32_t), "no padding");

/* A launch of a kernel. */
struct launch {
    struct function *function;
    struct launch_shape shape;
    const void *params; /* laid out as the driver wants them */
    bool urgent;        /* before all other work that waits for space on the GPU */
};

/* The graph batches of one stream. A batch is created when its length is wanted again and again,
 * because that takes as long as a hundred launches. */
struct graph_batches {
    const struct device *device;
    struct graph_batch *batch[GRAPH_BATCH_KINDS];
    unsigned wanted[GRAPH_BATCH_KINDS];
    /* Of their nodes, because a node does not get those of the stream that it is launched into. */
    int priority, urgent_priority;
    bool unavailable; /* the driver has no graph batches for this stream */
};

/* Launches the first of `count` kernels as one batch. Returns how many, or 0 when they have to be
 * launched one by one. The caller has called stream_begin_brief(). */
unsigned graph_batches_launch(struct graph_batches *batches, CUstream stream,
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
