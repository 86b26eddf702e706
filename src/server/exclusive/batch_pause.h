/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times in which launches go to the driver one by one and not in graph batches. NVIDIA's driver
 * (580) is the reason. A program may change the parameters of a graph's kernels while a graph with
 * conditional nodes runs in the same context. Then the GPU may stop for some seconds. It then fails
 * with CUDA_ERROR_LAUNCH_FAILED, without Funnel, too. So the server launches no batch and sets no
 * node on a device that has graphs with conditional nodes. That holds for a second after the last,
 * too.
 *
 * All functions are for any thread.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "device.h"

struct batch_pause {
    pthread_mutex_t lock;       /* graphs, and changes of `until` other than to 0 */
    unsigned graphs;            /* that have begun a pause and not ended it */
    atomic_uint_fast64_t until; /* clock_ns(); 0 = batches may be launched */
};

/* Of one context. NULL when out of memory. */
struct batch_pause *batch_pause_create(void);
/* NULL is allowed. */
void batch_pause_destroy(struct batch_pause *pause);

/* Each call is followed by one of batch_pause_end(). True when there was a pause already; else a
 * thread that has just looked may still launch a batch. */
bool batch_pause_begin(const struct device *device);
void batch_pause_end(const struct device *device);

/* Whether the pause lasts, where there was one. */
bool batch_pause_lasts(struct batch_pause *pause);

/* Relaxed: a thread that begins a pause waits for threads that look at the same time. */
static inline bool batch_pause_is_on(const struct device *device)
{
    return atomic_load_explicit(&device->batch_pause->until, memory_order_relaxed) &&
           batch_pause_lasts(device->batch_pause);
}
