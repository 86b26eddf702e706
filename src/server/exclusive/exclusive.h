/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exclusive calls: calls of NVIDIA's driver that wait for all streams of a context, and keep the
 * driver's lock meanwhile, so that no client launches. The server makes such a call at an idle
 * point: no stream of the context then has work that takes long. The session's thread waits for
 * the idle point without the driver's lock, and all other clients launch as they like.
 *
 *     exclusive_begin()
 *          |
 *          v             work is left after EXCLUSIVE_PROMPT_NS: its clients are suspended
 *      +-> PROBE ------> for EXCLUSIVE_BRIEF_NS at most, and the streams are probed again
 *      |     |  |                         |
 *      |     |  | work is left            | no work is left
 *      |     |  v                         |
 *      |     | ROUND n: the clients of    |
 *      +-----|-- long work are suspended  |
 *     n + 1  |   (idle.c)                 |
 *            | no work is left            |
 *            v                            v
 *          CLOSE: gate_close() waits until no stream waits for its client
 *            |
 *            v
 *          CALL: the gate is closed, and no new client begins its work
 *            |
 *            v  exclusive_end()
 *          LINGER: clients with long work stay suspended for EXCLUSIVE_LINGER_NS, since the session
 *                  often makes the next exclusive call at once; all others go on
 *
 * From every state a session that ends goes back without its call (CUDA_ERROR_NOT_READY), except
 * after exclusive_begin_at_end(). A stream that waits for its client ends PROBE and ROUND: the gate
 * knows what to do about it.
 *
 * Lock order, outermost first: the gates of contexts, the server's lock, the lock of one session's
 * streams. Then the gate's lock of its stream waits, and the lock of spare events. The gates of
 * several contexts are only tried together, so their order does not matter.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "driver_table.h"

struct device;
struct devices;
struct server;
struct session;

/* Work that is not done after this time may be the end of a long kernel, behind which the next one
 * comes at once. */
#define EXCLUSIVE_PROMPT_NS (1 * NS_PER_MS)

/* The longest suspension of clients whose work is not known to be long: most calls take less. */
#define EXCLUSIVE_BRIEF_NS (250 * NS_PER_MS)

/* Clients with long work are suspended until the call has been made, or until none of their work
 * has been done for this time. Their kernels may wait for their next launch. That is the time in
 * round 1, where most of them are suspended first. It doubles with each round. */
#define EXCLUSIVE_ROUND_NS (2 * NS_PER_SEC)
#define EXCLUSIVE_DOUBLINGS_MAX 6u

/* How soon after an exclusive call its session makes the next, where it does. */
#define EXCLUSIVE_LINGER_NS (5 * NS_PER_MS)

/* An exclusive call, and the sessions that it has suspended: suspend.h. */
#define SUSPENDED_MAX 64u
struct suspended_session {
    uint32_t id;    /* the session's */
    uint64_t until; /* as it was suspended first */
};
struct exclusive_call {
    struct suspended_session suspended[SUSPENDED_MAX];
    unsigned count;
    bool at_end;           /* exclusive_begin_at_end() */
    bool blocks_admission; /* admission_block() was called */
};

/* Creates the gate, the spare events, the capacity, the launch slots and the batch pause of each
 * context: 0 or -ENOMEM. The second undoes it. */
int exclusive_init(struct devices *devices);
void exclusive_fini(struct devices *devices);

/* On the session's thread, in the device's context and without any lock: around an exclusive call,
 * named `what` in the log. The first may take as long as kernels that run. It returns what
 * gate_close() returns, or CUDA_ERROR_NOT_READY where the session is to end. Unless that is
 * CUDA_SUCCESS, neither the call nor exclusive_end() may follow. */
CUresult exclusive_begin(struct session *session, const struct device *device, const char *what,
                         struct exclusive_call *call);

/* The same for a call that a session makes at its end, too. */
CUresult exclusive_begin_at_end(struct session *session, const struct device *device,
                                const char *what, struct exclusive_call *call);

/* The same for a call that waits for no kernel, or harms no client by waiting. It must still not be
 * made while a stream waits for its client. `session` may then be NULL in exclusive_end(). */
CUresult exclusive_begin_now(const struct device *device, const char *what,
                             struct exclusive_call *call);

/* On the session's thread and without any lock: waits for an idle point of all contexts. The caller
 * closes the gate of all of them, and ends by suspend_end(). */
void exclusive_await_all(struct session *session, struct exclusive_call *call);

void exclusive_end(struct session *session, const struct device *device,
                   struct exclusive_call *call);
