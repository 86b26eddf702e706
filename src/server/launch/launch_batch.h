/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches that wait in the ring are given to the driver together.
 *
 * A plain launch is first set aside, and the worker looks at the ring again. While it finds more
 * launches for the same stream there, it sets them aside too. When it finds anything else, or
 * nothing, all of them go to the driver. So no launch waits for one that the client has not made
 * yet. A client that makes launches one at a time gets them one at a time. Only launches of a
 * training that share CPUs wait for others, so that the same ones go together in each step.
 *
 * A client mostly waits at once for a launch that comes alone. Then its fence is the next message
 * in the ring, and the two go to the driver together. Where that was so before, the worker waits a
 * microsecond for the fence.
 *
 * All functions are the session thread's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "graph_batches.h"

/* Launches with more bytes of parameters are made by themselves. PyTorch's kernels for lists of
 * tensors take up to 4 KiB. */
#define LAUNCH_BATCH_PARAMS_MAX 4096u

struct function;
struct session;
struct stream;
struct wire_cuLaunchKernelEx;

/* The launches of a session that the driver has not got yet. */
struct launch_batch {
    struct stream *stream;
    unsigned count, most; /* how many of them there may be: stream_flow.h */
    uint32_t uses;        /* of all of their functions */
    uint64_t since;       /* clock_ns() at which the wait for a fence began; 0 = it did not */
    unsigned gathered;    /* how many there were when a worker looked last; 0 = it did not */
    uint64_t held_since, gathered_at; /* clock_ns() of its first look, and of the last launch */
    struct launch launches[GRAPH_BATCH_MAX];
    _Alignas(16) unsigned char params[GRAPH_BATCH_MAX][LAUNCH_BATCH_PARAMS_MAX];
};

/* Sets a plain launch aside: one without attributes, and with all the parameters that the function
 * takes. */
void launch_batch_add(struct session *session, const struct wire_cuLaunchKernelEx *in,
                      struct function *function, struct stream *stream);

/* The ring is empty: whether the fence of the launch that was set aside is likely to come within a
 * microsecond. */
bool launch_batch_awaits_fence(struct session *session);

/* The ring is empty, at `now`: whether launches of a training are held until more have come. */
bool launch_batch_gathers(struct session *session, uint64_t now);

/* Whether there are launches that were set aside. */
bool launch_batch_is_pending(const struct session *session);

/* Makes the launches that were set aside: false when there were none. Called before every other
 * command of the client. Errors are logged and deferred to the client. */
bool launch_batch_flush(struct session *session);
