/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events behind the work that the busy streams of a context have now: they tell, without a call
 * that waits, when one that waits for all streams would return.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "server.h"
#include "session.h"

/* More busy streams than this are not looked at. */
#define STREAM_PROBE_MAX 256u

struct stream_probe {
    const struct device *device;
    unsigned count;
    CUevent events[STREAM_PROBE_MAX];  /* each recorded behind the work of a busy stream */
    uint32_t owners[STREAM_PROBE_MAX]; /* whose it is: session->id */
};

/* On the thread of `session`, whose own streams count as well. Where the context cannot be entered
 * the probe is empty. Takes the locks of the server and of the sessions' streams, and asks the
 * driver meanwhile. So the caller keeps away calls that wait for all streams (quiesce_wait_try()):
 * the driver would answer after such a call, and the server's main thread waits for its lock. */
void stream_probe_begin(struct stream_probe *probe, struct session *session,
                        const struct device *device);

/* The same for other callers: it keeps those calls away itself. False where that was not possible
 * within `timeout_ns`, and then the probe is empty. */
bool stream_probe_try(struct stream_probe *probe, struct session *session,
                      const struct device *device, uint64_t timeout_ns);

void stream_probe_end(struct stream_probe *probe);

/* Whether the streams have come to the end of that work. */
bool stream_probe_is_done(struct stream_probe *probe);

/* The same after some waiting, for at most `timeout_ns`. */
bool stream_probe_await(struct stream_probe *probe, uint64_t timeout_ns);

/* Whether a stream of the session has work left. */
bool stream_probe_has(const struct stream_probe *probe, const struct session *session);
