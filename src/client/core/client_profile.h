/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profiler of this program (profiler_interface.h): hooks around its calls, and the records of
 * its work that the server writes. While there is none this costs nothing: the entry points look at
 * client_tracing anyway.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "profiler_interface.h"
#include "trace_format.h"

/* Gets a record of finished work; one thread at a time. */
typedef void profile_take(const struct trace_record *record, const struct profiler_hooks *hooks);

/* As struct profiler_interface says. */
CUresult client_profile_begin(const struct profiler_hooks *hooks);
CUresult client_profile_collect(bool ask, profile_take *take);
CUresult client_profile_end(profile_take *take);
uint64_t client_profile_lost(void);

bool client_profile_is_on(void);

/* A call of the program begins; the thread is inside the library or not attached. The arguments are
 * those of client_trace(). */
void client_profile_enter(const char *name, const char *format, va_list arguments);

/* It has returned. */
void client_profile_leave(const char *name, uint64_t began_ns, CUresult result, const char *format,
                          va_list arguments);

/* The same for a call of the runtime, in which the thread makes nested calls. */
void client_profile_runtime(const struct profiler_call *call, bool exits);

/* The program has called NVTX. From any thread, attached or not. */
void client_profile_mark(const struct profiler_mark *mark);

/* Something is made, or will end. The caller holds no lock but for one of a library that is being
 * loaded. */
void client_profile_resource(const struct profiler_resource *resource);

/* The number of the call in which the thread is, for a thread that helps it; 0 = none. */
uint32_t client_profile_correlation(void);
void client_profile_set_correlation(uint32_t correlation);

/* In a child of fork, which has no profiler. */
void client_profile_after_fork(void);
