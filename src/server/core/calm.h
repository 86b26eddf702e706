/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of NVIDIA's driver that wait for all streams of a context keep the driver's lock while they
 * wait, so that no client's launch gets through. Such a call is made in a calm moment: when no
 * stream has work that takes long. Its thread waits for that moment without the lock, and only the
 * clients whose work always takes long are held back meanwhile, for a bounded time.
 */
#pragma once

#include <stdint.h>

#include "driver_table.h"

struct device;
struct session;

/* Other clients that the caller holds back. */
#define CALM_HELD_MAX 64u
struct calm {
    uint32_t held[CALM_HELD_MAX]; /* by session->id */
    unsigned count;
};

/* On the session's thread, in the device's context and without any lock: around a call that waits
 * for all streams; `what` names it in the log. The first may take as long as kernels that run. The
 * result is quiesce_begin()'s (quiesce.h); unless it is CUDA_SUCCESS the call must not be made, and
 * calm_end() must not be called. */
CUresult calm_begin(struct session *session, const struct device *device, const char *what,
                    struct calm *calm);
/* The same for a call that waits for no kernel, but must not be made while a stream waits for a
 * value, or that nobody is harmed by. Then `session` may be NULL in calm_end(). */
CUresult calm_begin_at_once(const struct device *device, const char *what, struct calm *calm);
void calm_end(struct session *session, const struct device *device, struct calm *calm);

/* For the function that waits (server.h): a client is held back from its next command on. One that
 * is held already by this caller, or beyond CALM_HELD_MAX, is left alone. Takes no lock; the
 * caller's keeps the session alive. */
void calm_hold(struct calm *calm, struct session *session);

/* Lets all of them go on. Takes the server's lock. */
void calm_release(struct session *session, struct calm *calm);
