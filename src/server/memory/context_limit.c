/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stack of some KiB for each of a quarter of a million threads takes gigabytes. So each client
 * that raises a limit is charged for all of that memory, even if another client has raised the
 * limit before. The limits are lowered when the last client has left, because the driver's call
 * waits for all work.
 */
#include "context_limit.h"

#include "cleanup.h"
#include "exclusive.h"
#include "gate.h"
#include "log.h"
#include "memory_state.h"
#include "server_dispatch.h"

static uint64_t threads_of(const struct device *device)
{
    const int32_t *attributes = device->record.attributes;

    return (uint64_t)attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] *
           (uint64_t)attributes[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR];
}

/* The bytes of device memory for a limit raised by `more`; UINT64_MAX on overflow. */
static uint64_t cost_of(const struct device *device, CUlimit limit, uint64_t more)
{
    uint64_t each = 0, cost;

    if (limit == CU_LIMIT_STACK_SIZE)
        each = threads_of(device);
    else if (limit == CU_LIMIT_PRINTF_FIFO_SIZE || limit == CU_LIMIT_MALLOC_HEAP_SIZE)
        each = 1;
    return __builtin_mul_overflow(each, more, &cost) ? UINT64_MAX : cost;
}

/* The limit that the client is charged for so far: the initial limit of the context, or more. */
static uint64_t *paid_limit(struct session *session, const struct device *device, CUlimit limit)
{
    uint64_t *paid = &session->memory->device[device->ordinal].raised[limit];

    if (*paid < device->record.limits[limit])
        *paid = device->record.limits[limit];
    return paid;
}

static CUresult raise_limit(const struct session *session, CUlimit limit, uint64_t value)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->server->memory->limits_lock);
    size_t now = 0;
    CUresult result = driver.cuCtxGetLimit(&now, limit);

    return result != CUDA_SUCCESS || value <= now ? result : driver.cuCtxSetLimit(limit, value);
}

static CUresult raise_exclusively(struct session *session, const struct device *device,
                                  CUlimit limit, uint64_t value)
{
    struct exclusive_call call;
    size_t now = 0;
    CUresult result = driver.cuCtxGetLimit(&now, limit);

    if (result != CUDA_SUCCESS || value <= now)
        return result;
    result = exclusive_begin(session, device, "cuCtxSetLimit", &call);
    if (result != CUDA_SUCCESS)
        return result;
    result = raise_limit(session, limit, value);
    exclusive_end(session, device, &call);
    return result;
}

/* The persisting part of the L2 cache would be taken from all clients. So a client reads back its
 * own value, and the device keeps the initial one. */
static bool is_hint(uint32_t limit)
{
    return limit == CU_LIMIT_PERSISTING_L2_CACHE_SIZE;
}

/* Once another client's kernels may have printed, the buffer keeps its size. The server empties it
 * more often than a program would. */
static bool stays(const struct session *session, CUlimit limit, CUresult result)
{
    if (limit != CU_LIMIT_PRINTF_FIFO_SIZE || result != CUDA_ERROR_INVALID_VALUE)
        return false;
    session_log_event(session, 0, " wants a larger printf buffer, which is in use: it stays");
    return true;
}

CUresult serve_cuCtxSetLimit(struct session *session, const struct wire_cuCtxSetLimit *in)
{
    const struct device *device = session_find_device(session, "cuCtxSetLimit", in->device);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (in->limit >= DEVICE_LIMITS_MAX)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    if (is_hint(in->limit))
        return CUDA_SUCCESS;
    if (session->limits_used[device->ordinal] >> in->limit & 1) {
        session_log_error(session, "cuCtxSetLimit: a kernel that uses limit %u has been launched",
                          in->limit);
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult result = session_enter(session, device);
    uint64_t *paid = paid_limit(session, device, (CUlimit)in->limit);
    uint64_t more = in->value > *paid ? in->value - *paid : 0;
    uint64_t cost = cost_of(device, (CUlimit)in->limit, more);

    if (result != CUDA_SUCCESS)
        return result;
    if (cost && !memory_charge(session, in->device, cost))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = raise_exclusively(session, device, (CUlimit)in->limit, in->value);
    if (result == CUDA_SUCCESS)
        *paid += more;
    else
        memory_refund(session, in->device, cost);
    return stays(session, (CUlimit)in->limit, result) ? CUDA_SUCCESS : result;
}

/* A limit that the driver refuses to lower stays. Setting the stack size also releases memory that
 * the driver took for a kernel with a larger stack. */
static void restore_limit(const struct device *device, CUlimit limit)
{
    size_t now = 0;

    if (!(device->record.limits_known >> limit & 1) || driver.cuCtxGetLimit(&now, limit))
        return;
    if (now > device->record.limits[limit] || limit == CU_LIMIT_STACK_SIZE)
        driver.cuCtxSetLimit(limit, device->record.limits[limit]);
}

bool context_limits_restore(struct server *server, const struct device *device)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->memory->limits_lock);

    if (!server_is_empty(server) || !gate_try_close(device->gate))
        return false;
    for (int limit = 0; limit < DEVICE_LIMITS_MAX && limit < CU_LIMIT_MAX; limit++)
        restore_limit(device, (CUlimit)limit);
    gate_open(device->gate);
    return true;
}
