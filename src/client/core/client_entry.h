/* SPDX-License-Identifier: Apache-2.0 */
/* What the generated entry points (client_entry.c) need of the library behind them. */
#pragma once

#include <stdbool.h>

#include "cuda_abi.h"

/* COLD: nothing is decided yet, or cuInit was not called. */
enum client_mode {
    CLIENT_COLD = 0,
    CLIENT_FUNNEL = 1,      /* attached: calls go to client_cuX */
    CLIENT_PASSTHROUGH = 2, /* no daemon: calls go to the real driver */
};

extern int client_mode_word;

static inline int client_mode(void)
{
    return __atomic_load_n(&client_mode_word, __ATOMIC_ACQUIRE);
}

/* What a call other than the early ones answers while cold. */
CUresult client_not_ready(void);

/* Notes once for each name that a program asked for a call that Funnel does not have. */
void client_unsupported(const char *name);

/* The calling thread's meaning of stream 0 from now on; returns the meaning until now. */
CUstream client_default_stream_swap(CUstream stream);

/* FUNNEL_TRACE: one line a call. */
extern bool client_tracing;
void client_trace(const char *name, uint64_t began_ns, CUresult result, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The entry points of the real driver, NULL where it lacks one. */
extern struct passthrough_table passthrough;
