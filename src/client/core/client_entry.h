/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that the generated entry points (client_entry.c) call in the library. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "cuda_abi.h"

/* COLD: nothing is decided yet, or cuInit was not called. */
enum client_mode {
    CLIENT_COLD = 0,
    CLIENT_FUNNEL = 1,      /* attached: calls go to client_cuX */
    CLIENT_PASSTHROUGH = 2, /* no daemon: calls go to the real driver */
};

extern _Atomic int client_mode_word; /* atomic: enum client_mode */

/* Partner: client_start.c, which stores it when everything is made. */
static inline int client_mode(void)
{
    return atomic_load_explicit(&client_mode_word, memory_order_acquire);
}

/* The result of calls before cuInit. CUDA allows some calls even then. */
CUresult client_not_ready(void);

/* Logs once for each name that the program made a call that Funnel does not have. `name` is a
 * literal of the generated code. */
void client_unsupported(const char *name);

/* Logs once for each name and error that the program has been given the error. Not for answers that
 * programs expect, such as CUDA_ERROR_NOT_READY. `name` is a literal of the generated code. */
void client_error_returned(const char *name, CUresult result);

/* The result of a call that was passed on to the real driver, which is logged as well. */
static inline CUresult client_passed_on(const char *name, CUresult result)
{
    if (__builtin_expect(result != CUDA_SUCCESS, 0))
        client_error_returned(name, result);
    return result;
}

/* Sets what stream 0 means to the calling thread, and returns what it meant until now. Also while
 * not attached. */
CUstream client_default_stream_swap(CUstream stream);

/* FUNNEL_TRACE: one line for each call, written when it returns; or a profiler, whose hooks are
 * called (client_profile.h). client_call_began() returns clock_ns(); `name` is a literal of the
 * generated code. */
extern bool client_tracing;
uint64_t client_call_began(const char *name);
void client_trace(const char *name, uint64_t began_ns, CUresult result, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The entry points of the real driver, NULL where it lacks one. */
extern struct passthrough_table passthrough;
