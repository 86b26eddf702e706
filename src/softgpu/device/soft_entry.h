/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the generated entry points (soft_entry.c) need around each call.
 */
#pragma once

#include <stdbool.h>

#include "cuda_abi.h"

/* Whether cuInit has succeeded in this process, and not only in the one it was forked from. */
bool soft_ready(void);
CUresult soft_not_ready(void);

/* Notes, once a name, that a program asked for something the software GPU does not have. */
void soft_unsupported(const char *name);

/* Makes `stream` what stream 0 means in this thread, until it is swapped back. */
CUstream soft_default_stream_swap(CUstream stream);
/* What stream 0 means in this thread now: CU_STREAM_LEGACY or CU_STREAM_PER_THREAD. */
CUstream soft_default_stream(void);

/* FUNNEL_SOFT_TRACE=file: a line a call. */
extern bool soft_tracing;
__attribute__((format(printf, 4, 5))) void soft_trace(const char *name, uint64_t began_ns,
                                                      CUresult result, const char *format, ...);

/* How many calls stall at the moment; those that take the driver's lock stand aside then. Changed
 * under soft_lock (soft_stall.h). */
extern unsigned soft_stalling;
void soft_stand_aside(void);
