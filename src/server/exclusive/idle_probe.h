/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpoints behind the work that the busy streams of a context have now. They tell, without a
 * call that waits, when an exclusive call would return.
 */
#pragma once

#include "checkpoint.h"
#include "server.h"
#include "session.h"

/* Further busy streams are not looked at. */
#define IDLE_PROBE_MAX 256u

struct idle_probe {
    const struct device *device;
    unsigned count;
    struct checkpoint checkpoints[IDLE_PROBE_MAX]; /* each behind the work of a busy stream */
    uint32_t owners[IDLE_PROBE_MAX];               /* whose it is: session->id */
};

/* On the thread of `session`, whose own streams count as well. Where the context cannot be entered
 * the probe is empty. Takes the locks of the server and of the sessions' streams, and asks the
 * driver meanwhile. So the caller has entered the gate. Beside an exclusive call the driver would
 * answer only after it, and the server's main thread would wait for the server's lock. */
void idle_probe_begin(struct idle_probe *probe, struct session *session,
                      const struct device *device);

/* The same for other callers: it enters the gate itself. False where that was not possible within
 * `timeout_ns`, and then the probe is empty. */
bool idle_probe_try(struct idle_probe *probe, struct session *session, const struct device *device,
                    uint64_t timeout_ns);

/* Gives the checkpoints back. The streams need not have come to them. */
void idle_probe_end(struct idle_probe *probe);

/* Whether the streams have come to the end of that work. */
bool idle_probe_is_done(struct idle_probe *probe);

/* The same after some waiting, for at most `timeout_ns`. */
bool idle_probe_await(struct idle_probe *probe, uint64_t timeout_ns);

/* Whether a stream of the session has work left. */
bool idle_probe_has(const struct idle_probe *probe, const struct session *session);
