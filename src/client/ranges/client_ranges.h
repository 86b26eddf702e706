/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges and marks that a program sets with NVTX or cuProfilerStart(), and its waits for the
 * device, for `funnel trace`. The library sends them to the server while the client is traced; else
 * a range costs a counter and a load. What began before the trace did is left out. From any thread,
 * attached or not.
 */
#pragma once

#include <stdint.h>

/* Of a name so many bytes are kept. */
#define RANGE_NAME_MAX 127

/* Sends a range of the calling thread, which is inside the library and does not hold the channel's
 * lock. The client is traced, or was just now. Times are clock_ns(). */
void client_range_send(const char *name, uint64_t begin_ns, uint64_t end_ns);

/* A moment. The name is copied. */
void client_mark(const char *name);

/* The thread's innermost range begins, and ends. Both return its depth, from 0; -1 when there is
 * none to end. */
int client_range_push(const char *name);
int client_range_pop(void);

/* A range that any thread may end: its number, from 1. Numbers of ranges that have ended are used
 * again. 0 when it is not recorded. */
uint64_t client_range_start(const char *name);
void client_range_end(uint64_t number);
