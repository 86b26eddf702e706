/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver as a library in a program's process: whether it is initialized, what stream 0 means,
 * and the trace of its calls.
 */
#include "soft_entry.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "call_trace.h"
#include "fd.h"
#include "soft.h"
#include "soft_device.h"
#include "text.h"

bool soft_tracing;

static int trace_fd = -1;
static bool initialized;
static bool begun; /* a thread has called cuInit */
static bool forked;

bool soft_ready(void)
{
    return __atomic_load_n(&initialized, __ATOMIC_ACQUIRE) && !forked;
}

CUresult soft_not_ready(void)
{
    return CUDA_ERROR_NOT_INITIALIZED;
}

void soft_trace(const char *name, uint64_t began_ns, CUresult result, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    if (!call_trace_write(trace_fd, name, began_ns, (int)result, format, arguments))
        soft_tracing = false;
    va_end(arguments);
}

void soft_unsupported(const char *name)
{
    soft_log("%s is not supported by the software GPU", name);
}

__attribute__((constructor)) static void open_trace(void)
{
    trace_fd = fd_open_log("FUNNEL_SOFT_TRACE");
    soft_tracing = trace_fd >= 0;
}

/* A child has the parent's objects but none of its threads, as on hardware. A lock may be that of a
 * thread which it lacks. So every call is refused there before it takes one. */
static void after_fork(void)
{
    forked = __atomic_load_n(&begun, __ATOMIC_RELAXED);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, after_fork);
}

#define START_MS_MAX 60000u

/* Waits as long as a driver's start takes, where a test asks for that. */
static void take_time_to_start(void)
{
    const char *value = getenv("FUNNEL_SOFT_START_MS");
    uint64_t ms = 0;

    if (!value || text_to_u64(value, &ms) || ms > START_MS_MAX)
        return;
    struct timespec pause = {.tv_sec = (time_t)(ms / 1000),
                             .tv_nsec = (long)(ms % 1000 * 1000 * 1000)};
    while (nanosleep(&pause, &pause) < 0 && errno == EINTR)
        continue;
}

static CUresult initialize_locked(void)
{
    CUresult result;

    if (initialized)
        return CUDA_SUCCESS;
    take_time_to_start();
    if (handles_init(&soft_handles, HANDLE_INDEX_MAX))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = devices_init_locked();
    if (result) {
        handles_fini(&soft_handles);
        return result;
    }
    __atomic_store_n(&initialized, true, __ATOMIC_RELEASE);
    return CUDA_SUCCESS;
}

CUresult soft_cuInit(unsigned int Flags)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    if (Flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (forked)
        return CUDA_ERROR_NOT_INITIALIZED;
    pthread_once(&once, watch_forks);
    __atomic_store_n(&begun, true, __ATOMIC_RELAXED);
    SOFT_LOCKED;
    return initialize_locked();
}

CUresult soft_cuDriverGetVersion(int *driverVersion)
{
    *driverVersion = SOFT_DRIVER_VERSION;
    return CUDA_SUCCESS;
}
