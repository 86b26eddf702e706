/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of the driver that wait until all streams of a context are idle, and let nobody else call
 * it meanwhile; and streams that wait for a value (cuStreamWaitValue). Where that value is to be
 * written by a later call, the two wait for each other, and with them every client. So such a call
 * is not begun before the streams have got their values, and while it lasts no stream begins to
 * wait.
 *
 * Copies of memory that is not page-locked count as such calls: the driver holds its lock until
 * they are done, and they may stand in one hardware queue with a stream that waits. A kernel that
 * waits for a later call does the same, but CUDA promises no program that it ends.
 */
#pragma once

#include "driver_table.h"

/* Before and after a call that waits: CUDA_ERROR_NOT_READY, with a sentence in the log, when some
 * stream has waited for its value for too long; then the call is not to be made, and there is no
 * stall_end(). `what` is for that sentence. */
CUresult stall_begin(const char *what);
void stall_end(void);

/* Around what gives a stream something to wait for; in between, once it has it, take note of it. */
void stall_wait_begin(void);
void stall_wait_note(CUstream stream);
void stall_wait_end(void);
