/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate keeps apart two kinds of calls that would wait for each other.
 *
 * Some calls of NVIDIA's driver wait until all streams of a context are idle, and let no other
 * thread into the driver meanwhile. A stream may wait for a value (cuStreamWaitValue) that a later
 * call writes. If such a call began while such a stream waits, the two would wait for each other,
 * and every client with them. So a call of the first kind takes this lock exclusively, once every
 * stream has got its value. No stream begins to wait while the call holds the lock.
 *
 * The gate covers every stream that waits for a word of its client's (cuStreamWaitValue), or for a
 * callback. A callback ends by itself as a kernel does, unless its client means harm: then its
 * client is ended in the end, and nothing hangs.
 *
 * Copies of memory that is not page-locked count as calls of the first kind. The driver holds its
 * lock until they are done, and they may share a hardware queue with a stream that waits. A kernel
 * that waits for a later call does the same, but CUDA promises no program that it ends.
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
 * Overlapping waits of many clients can delay the call although none of them is so long. So once
 * the call has been delayed for that time, no wait begins any more. After as long again, the server
 * ends each client whose stream still waits. CUDA_ERROR_NOT_READY when the caller's own stream
 * waits so long, or when nothing helps for four times as long. Then the caller makes neither the
 * call nor gate_open(). */
CUresult gate_close(struct gate *gate, const char *what);
void gate_open(struct gate *gate);

/* The same for a caller that can try again later. False when the lock is not free; then the caller
 * must not call gate_open(). */
bool gate_try_close(struct gate *gate);

/* Whether a stream waits for a value now. */
bool gate_has_waits(struct gate *gate);

/* Around a call that makes a stream wait for a value. The first may take as long as others wait. It
 * is false once `stop` has been set meanwhile; then the caller makes neither the call nor
 * gate_leave(). Between the two, before the stream gets the wait, gate_wait_expect() makes a record
 * of it, or NULL without memory. When the stream has got the wait, gate_wait_record() shows it to
 * gate_close(); when it has not, gate_wait_drop() forgets it. Both allow NULL. The device's context
 * is current. */
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
