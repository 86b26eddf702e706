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
    CLIENT_ON_MANAGED = 3,  /* attached, but the calling thread's stack lies in managed memory */
};

/* Only of the word: attached, and managed memory moves. */
#define CLIENT_FUNNEL_MANAGED 4

extern _Atomic int client_mode_word; /* atomic: enum client_mode, or CLIENT_FUNNEL_MANAGED */

/* The word changes if it is `from`. */
void client_mode_change(int from, int to);

/* The mode of a thread while managed memory moves. */
int client_mode_of_thread(void);

/* Partner: client_start.c, which stores it when everything is made. */
static inline int client_mode(void)
{
    int mode = atomic_load_explicit(&client_mode_word, memory_order_acquire);

    if (__builtin_expect(mode == CLIENT_FUNNEL, 1))
        return CLIENT_FUNNEL;
    return mode == CLIENT_FUNNEL_MANAGED ? client_mode_of_thread() : mode;
}

/* The result of calls in these modes: COLD, where CUDA allows some calls nevertheless, and
 * ON_MANAGED. */
CUresult client_not_ready(int mode);

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
 * called (client_profile.h). The result of client_call_began() is clock_ns(), and `name` is a
 * literal of the generated code. */
extern bool client_tracing;
uint64_t client_call_began(const char *name, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void client_trace(const char *name, uint64_t began_ns, CUresult result, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The entry points of the real driver, NULL where it lacks one. */
extern struct passthrough_table passthrough;
