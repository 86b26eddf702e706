/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graph batches: graphs of the driver in which one kernel follows the other. To set the kernels and
 * parameters of an existing batch and to launch it costs about a third of launching the kernels one
 * by one. It costs less the fewer nodes are set. All functions are the session thread's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "driver_table.h"

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

/* Of nodes, because a node does not get that of the stream that it is launched into. */
struct node_priorities {
    int usual, urgent;
};

/* Created with `length` launches. NULL when the driver refuses. A function that it takes into no
 * graph is not_batchable then. */
struct graph_batch *graph_batch_create(const struct node_priorities *priorities,
                                       const struct launch *launches, unsigned length);

/* Those that still run go when they are done. */
void graph_batch_destroy(struct graph_batch *batch);

/* Sets those nodes that differ from the launches, as many as the batch has. False when the driver
 * refuses one. */
bool graph_batch_set(struct graph_batch *batch, const struct launch *launches);

/* Whether the driver has taken it. */
bool graph_batch_launch(const struct graph_batch *batch, CUstream stream);

/* How many kernels it has. */
unsigned graph_batch_length(const struct graph_batch *batch);

/* Whether a node of the graph has a kernel of the module, which then must not be unloaded. */
bool graph_batch_uses(const struct graph_batch *batch, const struct module *module);
