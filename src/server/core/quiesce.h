/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The quiesce lock keeps apart two kinds of calls that would wait for each other.
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
struct quiesce;
struct stream_wait;

/* The lock of one context. NULL when out of memory. */
struct quiesce *quiesce_create(void);

/* Several locks as one, for calls that wait for the streams of several contexts; for
 * quiesce_begin(), quiesce_try() and quiesce_end() alone. The members, at most QUIESCE_MEMBERS_MAX,
 * stay the caller's. NULL when out of memory. */
#define QUIESCE_MEMBERS_MAX 64u
struct quiesce *quiesce_create_group(struct quiesce *const *members, unsigned count);

/* NULL is allowed. */
void quiesce_destroy(struct quiesce *quiesce);

/* Ends the client of that number, whose stream has kept a call of another client away for too
 * long. False when the call is its own, or when it cannot be ended. Called without any lock. */
typedef bool quiesce_overdue(void *context, uint32_t client);

/* Before other threads use the lock. Without it no client is ended. */
void quiesce_set_overdue(struct quiesce *quiesce, quiesce_overdue *end_client, void *context);

/* Before and after a call that waits for all streams; `what` names it in the log. Where a stream of
 * another client has waited for its value for longer than QUOTA_WAIT_SECONDS, that client is ended.
 * Waits of many clients that overlap keep the call away without any of them being so long: so no
 * wait begins any more once the call has been kept away for that time, and after as long again each
 * client is ended whose stream still waits. Where the caller's own stream does, or where nothing
 * helps for four times as long, the result is CUDA_ERROR_NOT_READY, and then the call must not be
 * made and quiesce_end() must not be called. */
CUresult quiesce_begin(struct quiesce *quiesce, const char *what);
void quiesce_end(struct quiesce *quiesce);

/* The same for a caller that can try again later: false when the lock cannot be had at once, and
 * then quiesce_end() must not be called. */
bool quiesce_try(struct quiesce *quiesce);

/* Whether a stream waits for a value now. */
bool quiesce_has_waits(struct quiesce *quiesce);

/* Around a call that makes a stream wait for a value. The first may take as long as others wait:
 * false once `stop` has been set meanwhile, and then the call must not be made and
 * quiesce_wait_end() must not be called. Between the two, before the stream gets the wait,
 * quiesce_wait_expect() makes a record of it, or NULL without memory; once the stream has got it,
 * quiesce_wait_record() lets quiesce_begin() know of it, and where it has not, quiesce_wait_drop()
 * forgets it. Both allow NULL. The device's context is current. */
bool quiesce_wait_begin(struct quiesce *quiesce, const atomic_bool *stop);
struct stream_wait *quiesce_wait_expect(const struct device *device, CUstream stream,
                                        uint32_t client);
void quiesce_wait_record(struct stream_wait *wait, CUstream stream);
void quiesce_wait_drop(struct stream_wait *wait);

/* The same without waiting: false while a call that waits for all streams is being made, and then
 * quiesce_wait_end() must not be called. */
bool quiesce_wait_try(struct quiesce *quiesce);

/* The same, for at most `timeout_ns`: most of those calls find the streams idle and take no time.
 */
bool quiesce_wait_try_for(struct quiesce *quiesce, uint64_t timeout_ns);
void quiesce_wait_end(struct quiesce *quiesce);
