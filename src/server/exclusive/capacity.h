/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Capacity for streams and graphs in a context. NVIDIA's driver (580) keeps their device state in
 * blocks, one for 43 streams or small graphs. The next stream or graph gets the place of one that
 * has ended. When all blocks are full, the driver takes another one. It then waits for all kernels
 * of the context and blocks all other threads. Every client stops meanwhile, and forever if a
 * kernel or a stream waits for one of them.
 *
 * So the server takes blocks in advance, by streams that it creates and destroys. It does so before
 * there are clients, and later whenever no client is at work (upkeep.c). What does not fit into the
 * capacity that is left is created at an idle point (exclusive.h). But graphs of launches are not
 * created then, and the launches go to the driver one by one. So there is capacity for these as
 * soon as there are streams.
 */
#pragma once

#include "device.h"
#include "exclusive.h"

/* A stream takes one slot, and so does a graph with few nodes. */
#define CAPACITY_STREAM 1u

/* Has blocks taken in the current context, before it has clients. */
void capacity_prepare(void);

/* The account of a context that was prepared. NULL when out of memory. */
struct capacity *capacity_create(void);
/* NULL is allowed. */
void capacity_destroy(struct capacity *capacity);

/* From any thread: takes slots for something that is about to be created, where there are enough.
 */
bool capacity_take(const struct device *device, unsigned slots);
/* Something is destroyed that had so many slots. */
void capacity_give(const struct device *device, unsigned slots);

struct capacity_use {
    unsigned slots;
    bool grows; /* the capacity is not enough, so it is created at an idle point */
    struct exclusive_call call;
};

/* On the session's thread, in the device's context and without any lock: around the call of the
 * driver that creates something. Where the capacity is not enough the first waits for an idle
 * point. The result is exclusive_begin()'s; unless it is CUDA_SUCCESS the call must not be made,
 * and capacity_end() must not be called. `result` is that of the call; without CUDA_SUCCESS the
 * slots are given back. */
CUresult capacity_begin(struct session *session, const struct device *device, unsigned slots,
                        const char *what, struct capacity_use *use);
void capacity_end(struct session *session, const struct device *device, struct capacity_use *use,
                  CUresult result);

/* From any thread: a stream of a client has its slot now (1), or gives it back (-1). */
void capacity_note_stream(const struct device *device, int more);

/* Whether the capacity had better be refilled: little is left, or less than the streams' launches
 * may want for graphs. */
bool capacity_is_low(const struct device *device);
/* Whether little is left, so that only those get some that save the most. */
bool capacity_is_scarce(const struct device *device);
/* In the device's context, while no kernel runs there: takes some milliseconds. */
void capacity_refill(const struct device *device);
