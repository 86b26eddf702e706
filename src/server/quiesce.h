/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of the driver that wait until all streams of a context are idle, and let nobody else call
 * it meanwhile; and streams that wait for a value (cuStreamWaitValue). Where that value is to be
 * written by a later call, the two wait for each other, and with them every client. So such a call
 * is not begun before the streams have got their values, and while it lasts no stream begins to
 * wait.
 *
 * What is covered: every stream that waits for a word of its client's (cuStreamWaitValue), and
 * those that wait for a callback of a client that prints, for its fences are written by our own
 * thread, after calls of the driver. Callbacks of other clients are not: the GPU itself writes the
 * fence before one, and the client ends the host wait behind it without any call, so such a wait
 * ends by itself as a kernel does.
 *
 * Copies of memory that is not page-locked count as such calls: the driver holds its lock until
 * they are done, and they may stand in one hardware queue with a stream that waits. A kernel that
 * waits for a later call does the same, but CUDA promises no program that it ends.
 */
#pragma once

#include <stdbool.h>

#include "driver_table.h"

struct device;

/* Before and after a call that waits: CUDA_ERROR_NOT_READY, with a sentence in the log, when some
 * stream has waited for its value for too long; then the call is not to be made, and there is no
 * quiesce_end(). `what` is for that sentence. */
CUresult quiesce_begin(const char *what);
void quiesce_end(void);

/* The same for whoever can do it another time: false when it can not be done at once, and then
 * there is no quiesce_end(). */
bool quiesce_try(void);

/* Around what gives a stream something to wait for; in between, once it has it, take note of it.
 * The device's context is current. */
void quiesce_wait_begin(void);
void quiesce_wait_record(const struct device *device, CUstream stream);
void quiesce_wait_end(void);
