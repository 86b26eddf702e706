/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate keeps apart two kinds of calls that would wait for each other.
 *
 * Some calls of NVIDIA's driver wait until all streams of a context are idle, and let no other
 * thread into the driver meanwhile. A stream may wait for a value (cuStreamWaitValue) that a later
 * call writes. If such a call began while such a stream waits, the two would wait for each other,
 * and every client with them. So a call of the first kind takes this lock exclusively, once every
 * stream has got its value; and while it holds the lock no stream begins to wait.
 *
 * What is covered: every stream that waits for a word of its client's (cuStreamWaitValue), and
 * those that wait for a callback. A callback ends by itself as a kernel does, unless its client
 * means harm: then its client is ended in the end, and nothing hangs.
 *
 * Copies of memory that is not page-locked count as calls of the first kind: the driver holds its
 * lock until they are done, and they may stand in one hardware queue with a stream that waits. A
 * kernel that waits for a later call does the same, but CUDA promises no program that it ends.
 *
 * All functions may be called from any thread.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "driver_table.h"

struct device;
struct gate;
struct stream_wait;

/* The lock of one context. NULL when out of memory. */
struct gate *gate_create(void);

/* Several locks as one, for calls that wait for the streams of several contexts; for
 * gate_close(), gate_try_close() and gate_open() alone. The members, at most GATE_MEMBERS_MAX,
 * stay the caller's. NULL when out of memory. */
#define GATE_MEMBERS_MAX 64u
struct gate *gate_create_group(struct gate *const *members, unsigned count);

/* NULL is allowed. */
void gate_destroy(struct gate *gate);

/* Ends the client of that number, whose stream has kept a call of another client away for too
 * long. False when the call is its own, or when it cannot be ended. Called without any lock. */
typedef bool gate_overdue(void *context, uint32_t client);

/* Before other threads use the lock. Without it no client is ended. */
void gate_set_overdue(struct gate *gate, gate_overdue *end_client, void *context);

/* Before and after a call that waits for all streams; `what` names it in the log. Where a stream of
 * another client has waited for its value for longer than QUOTA_WAIT_SECONDS, that client is ended.
 * Waits of many clients that overlap keep the call away without any of them being so long: so no
 * wait begins any more once the call has been kept away for that time, and after as long again each
 * client is ended whose stream still waits. Where the caller's own stream does, or where nothing
 * helps for four times as long, the result is CUDA_ERROR_NOT_READY, and then the call must not be
 * made and gate_open() must not be called. */
CUresult gate_close(struct gate *gate, const char *what);
void gate_open(struct gate *gate);

/* The same for a caller that can try again later: false when the lock cannot be had at once, and
 * then gate_open() must not be called. */
bool gate_try_close(struct gate *gate);

/* Whether a stream waits for a value now. */
bool gate_has_waits(struct gate *gate);

/* Around a call that makes a stream wait for a value. The first may take as long as others wait:
 * false once `stop` has been set meanwhile, and then the call must not be made and
 * gate_leave() must not be called. Between the two, before the stream gets the wait,
 * gate_wait_expect() makes a record of it, or NULL without memory; once the stream has got it,
 * gate_wait_record() lets gate_close() know of it, and where it has not, gate_wait_drop()
 * forgets it. Both allow NULL. The device's context is current. */
bool gate_enter(struct gate *gate, const atomic_bool *stop);
struct stream_wait *gate_wait_expect(const struct device *device, CUstream stream, uint32_t client);
void gate_wait_record(struct stream_wait *wait, CUstream stream);
void gate_wait_drop(struct stream_wait *wait);

/* The same without waiting: false while a call that waits for all streams is being made, and then
 * gate_leave() must not be called. */
bool gate_try_enter(struct gate *gate);

/* The same, for at most `timeout_ns`: most of those calls find the streams idle and take no time.
 */
bool gate_try_enter_for(struct gate *gate, uint64_t timeout_ns);
void gate_leave(struct gate *gate);
