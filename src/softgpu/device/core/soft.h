/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by every file of the software GPU's driver: the one lock, and the handle table.
 *
 * All state of the driver is under soft_lock, which is held only for bookkeeping: kernels, copies
 * and callbacks run without it. A handle is looked up under the lock and its object used before it
 * is released.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "cleanup.h"
#include "cuda_abi.h"
#include "handles.h"
#include "list.h"
#include "soft_prototypes.h"

enum soft_handle_type {
    SOFT_CONTEXT = 1,
    SOFT_STREAM,
    SOFT_EVENT,
    SOFT_MODULE,
    SOFT_LIBRARY,
    SOFT_KERNEL,
    SOFT_FUNCTION,
    SOFT_ALLOCATION,
    SOFT_POOL,
    SOFT_RESOURCE,
    SOFT_GREEN,
    SOFT_GREEN_CONTEXT,
    SOFT_ARRAY,
    SOFT_MIPMAP,
    SOFT_LINK,
};

extern pthread_mutex_t soft_lock;
extern struct handles soft_handles;

/* Holds the lock to the end of the scope. */
#define SOFT_LOCKED _cleanup_mutex_ pthread_mutex_t *soft_held = mutex_hold(&soft_lock)

static inline void *soft_get(enum soft_handle_type type, const void *handle)
{
    return handles_get(&soft_handles, type, (uintptr_t)handle);
}

static inline uint64_t soft_add(enum soft_handle_type type, void *object)
{
    return handles_add(&soft_handles, type, object);
}

/* Writes a message to the device's log (soft_log.c). From any thread, with or without soft_lock. */
__attribute__((format(printf, 1, 2))) void soft_log(const char *format, ...);

/* Makes `stream` what stream 0 means in this thread, until it is swapped back. */
CUstream soft_default_stream_swap(CUstream stream);
/* The meaning of stream 0 in this thread: CU_STREAM_LEGACY or CU_STREAM_PER_THREAD. */
CUstream soft_default_stream(void);
