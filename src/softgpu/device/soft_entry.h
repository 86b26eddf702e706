/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Used by the generated entry points (soft_entry.c) around each call.
 */
#pragma once

#include <stdbool.h>

#include "cuda_abi.h"
#include "device_sync.h"
#include "soft.h"

/* Whether cuInit has succeeded in this process, and not only in the one it was forked from. */
bool soft_ready(void);
CUresult soft_not_ready(void);

/* Notes, once a name, that a program asked for something the software GPU does not have. */
void soft_unsupported(const char *name);

/* Writes to the user's log, once for each name and error, that a program that runs on this library
 * itself has been given the error. Not for answers that programs expect. */
void soft_error_returned(const char *name, CUresult result);

/* FUNNEL_SOFT_TRACE=file: a line a call. */
extern bool soft_tracing;
__attribute__((format(printf, 4, 5))) void soft_trace(const char *name, uint64_t began_ns,
                                                      CUresult result, const char *format, ...);
