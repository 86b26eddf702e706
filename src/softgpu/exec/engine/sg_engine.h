/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine: a device's virtual SMs, which run the grids that are submitted. Every function may be
 * called on any thread, but not from a done callback.
 */
#pragma once

#include <stdint.h>

#include "sg_launch.h"

struct sg_engine;

/* Zeros mean: as an H100 has them (threads 2048, blocks 32, shared 228 KiB, registers 65536). */
struct sg_engine_config {
    unsigned sm_count;     /* 0: 8; what is over SG_MAX_SMS is cut */
    unsigned host_threads; /* 0: as many as CPUs available */
    unsigned threads_per_sm;
    unsigned blocks_per_sm;
    unsigned shared_per_sm; /* bytes */
    unsigned registers_per_sm;
    uint64_t timeout_ms; /* a grid that runs longer ends; 0: none does */
};

/* Cheap: threads are made by the first launch. NULL = out of memory. */
struct sg_engine *sg_engine_create(const struct sg_engine_config *config);

/* Takes NULL. Ends what still runs (done is called with CUDA_ERROR_DEINITIALIZED) and joins the
 * threads. */
void sg_engine_destroy(struct sg_engine *engine);

/* Asynchronous; the launch is copied. An error here means that nothing was started and done will
 * not be called. */
CUresult sg_engine_submit(struct sg_engine *engine, const struct sg_launch *launch);

/* Ends every grid that runs in this space, and waits until their done callbacks have returned. */
void sg_engine_abort(struct sg_engine *engine, struct sg_space *space, CUresult result);

/* Ends the grids whose launch has this `user`, and returns at once. An engine thread calls done
 * with CUDA_SUCCESS, as if they had come to their end. A `user` without grids is allowed. */
void sg_engine_abort_launch(struct sg_engine *engine, const void *user);

/* Blocks of so many threads, with so many bytes of shared memory besides the kernel's own, that fit
 * on one SM at once; 0 = not even one. */
unsigned sg_occupancy(const struct sg_engine *engine, const struct sg_kernel_info *kernel,
                      unsigned block_threads, size_t dynamic_shared);
/* Clusters of so many blocks; a large one has an SM for itself. */
unsigned sg_cluster_occupancy(const struct sg_engine *engine, const struct sg_kernel_info *kernel,
                              unsigned block_threads, size_t dynamic_shared, unsigned cluster_size);
