/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver as a library in somebody's process: whether it is initialised, what stream 0 means,
 * and the trace of its calls.
 */
#include "soft_entry.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "call_trace.h"
#include "fd.h"
#include "soft.h"
#include "soft_device.h"

pthread_mutex_t soft_lock = PTHREAD_MUTEX_INITIALIZER;
struct handles soft_handles;
bool soft_tracing;

static int trace_fd = -1;
static bool initialised;
static bool forked;
static __thread CUstream default_stream = CU_STREAM_LEGACY;

bool soft_ready(void)
{
    return __atomic_load_n(&initialised, __ATOMIC_ACQUIRE) && !forked;
}

CUresult soft_not_ready(void)
{
    return CUDA_ERROR_NOT_INITIALIZED;
}

CUstream soft_default_stream_swap(CUstream stream)
{
    CUstream before = default_stream;

    default_stream = stream;
    return before;
}

CUstream soft_default_stream(void)
{
    return default_stream;
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
    soft_complain("%s is not supported by the software GPU", name);
}

__attribute__((constructor)) static void open_trace(void)
{
    trace_fd = fd_open_log("FUNNEL_SOFT_TRACE");
    soft_tracing = trace_fd >= 0;
}

/* A child has the parent's objects but none of its threads, as on hardware. */
static void after_fork(void)
{
    forked = true;
}

static CUresult initialise_locked(void)
{
    CUresult result;

    if (initialised)
        return CUDA_SUCCESS;
    if (handles_init(&soft_handles, HANDLE_INDEX_MAX))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = devices_init_locked();
    if (result) {
        handles_fini(&soft_handles);
        return result;
    }
    pthread_atfork(NULL, NULL, after_fork);
    __atomic_store_n(&initialised, true, __ATOMIC_RELEASE);
    return CUDA_SUCCESS;
}

CUresult soft_cuInit(unsigned int Flags)
{
    if (Flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (forked)
        return CUDA_ERROR_NOT_INITIALIZED;
    SOFT_LOCKED;
    return initialise_locked();
}

CUresult soft_cuDriverGetVersion(int *driverVersion)
{
    if (!driverVersion)
        return CUDA_ERROR_INVALID_VALUE;
    *driverVersion = SOFT_DRIVER_VERSION;
    return CUDA_SUCCESS;
}
