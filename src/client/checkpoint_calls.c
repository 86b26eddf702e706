/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuCheckpointProcess*(): orders to the daemon about any process of its programs, the calling one
 * included. They need no cuInit, because tools call them that use no GPU themselves. Where no
 * daemon listens they go to the real driver.
 */
#include <errno.h>
#include <string.h>

#include "client.h"
#include "client_call.h"
#include "client_log.h"
#include "client_prototypes.h"
#include "client_start.h"
#include "daemon_trust.h"
#include "fd.h"
#include "passthrough_table.h"
#include "process_checkpoint.h"
#include "suspend_result.h"
#include "text.h"

/* ---- which daemon ---- */

static bool listens(const struct paths *daemon)
{
    _cleanup_fd_ int fd = -1;

    return !daemon_connect_trusted(daemon->socket, &fd);
}

/* That of this program, or that which it would attach to. */
static bool find_daemon(struct paths *ret_daemon)
{
    if (client)
        return text_copy(ret_daemon->socket, sizeof(ret_daemon->socket), client->request.path);
    return client_may_use_daemons() && !paths_find_daemon(ret_daemon) && listens(ret_daemon);
}

static bool has_driver(void)
{
    return client_decide() == CUDA_SUCCESS && !client;
}

#define CALL_DRIVER(name, ...)                          \
    (!has_driver()      ? CUDA_ERROR_NOT_INITIALIZED    \
     : passthrough.name ? passthrough.name(__VA_ARGS__) \
                        : CUDA_ERROR_NOT_SUPPORTED)

/* ---- answers ---- */

static CUresult result_of(int status)
{
    switch (status) {
    case 0:
        return CUDA_SUCCESS;
    case -ESRCH:
    case SUSPEND_NO_CLIENT:
        return CUDA_ERROR_INVALID_VALUE;
    case -EINVAL:
    case SUSPEND_ALREADY:
    case SUSPEND_PENDING:
    case SUSPEND_NOT:
        return CUDA_ERROR_ILLEGAL_STATE;
    case -ETIMEDOUT:
    case SUSPEND_BUSY:
        return CUDA_ERROR_NOT_READY;
    case SUSPEND_ARRAYS:
    case SUSPEND_ALLOCATIONS:
    case SUSPEND_SHARED:
    case SUSPEND_DMA_BUF:
        return CUDA_ERROR_NOT_SUPPORTED;
    case SUSPEND_POOL_FULL:
    case SUSPEND_NO_MEMORY:
        return CUDA_ERROR_OUT_OF_MEMORY;
    default:
        return status < 0 ? CUDA_ERROR_MPS_CONNECTION_FAILED : CUDA_ERROR_OPERATING_SYSTEM;
    }
}

static CUresult answer(int status, int pid, const char *reason)
{
    CUresult result = result_of(status);

    if (result != CUDA_SUCCESS)
        client_log_to_file(result, "cuCheckpointProcess: process %d: %s", pid, reason);
    return result;
}

/* ---- questions and orders: the library may change while the thread waits for the daemon ---- */

static void begin_wait(void)
{
    if (call_is_inside())
        call_park();
}

static void end_wait(void)
{
    if (call_is_inside())
        call_unpark_when_open();
}

static CUresult find(const struct paths *daemon, int pid, struct process *ret_process)
{
    char reason[PROCESS_REASON_MAX] = "";

    begin_wait();
    int status = process_find(daemon, pid, ret_process, reason);
    end_wait();
    return answer(status, pid, reason);
}

static CUresult act(const struct paths *daemon, int pid, enum process_action action,
                    unsigned timeout_ms)
{
    char reason[PROCESS_REASON_MAX] = "";

    begin_wait();
    int status = process_act(daemon, pid, action, timeout_ms, reason);
    end_wait();
    return answer(status, pid, reason);
}

/* ---- arguments ---- */

static bool is_zero(const void *bytes, size_t size)
{
    static const char zeros[64];

    return !memcmp(bytes, zeros, size);
}

static const CUcheckpointGpuPair *find_pair(const CUcheckpointRestoreArgs *args,
                                            const uint8_t uuid[16])
{
    for (unsigned i = 0; i < args->gpuPairsCount; i++)
        if (!memcmp(&args->gpuPairs[i].oldUuid, uuid, sizeof(CUuuid)))
            return &args->gpuPairs[i];
    return NULL;
}

/* The pairs have to name every device of the process. It stays on these. */
static CUresult check_pairs(const CUcheckpointRestoreArgs *args, const struct process *process)
{
    for (unsigned i = 0; i < process->device_count; i++) {
        const CUcheckpointGpuPair *pair = find_pair(args, process->device_uuids[i]);

        if (!pair)
            return CUDA_ERROR_INVALID_VALUE;
        if (!memcmp(&pair->newUuid, &pair->oldUuid, sizeof(CUuuid)))
            continue;
        client_log_to_file(CUDA_ERROR_NOT_SUPPORTED,
                           "cuCheckpointProcessRestore: process %d cannot move to another GPU",
                           process->pid);
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return CUDA_SUCCESS;
}

static CUresult check_restore(const struct paths *daemon, int pid,
                              const CUcheckpointRestoreArgs *args)
{
    struct process process;

    if (!args || !args->gpuPairsCount)
        return CUDA_SUCCESS;
    if (!args->gpuPairs)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = find(daemon, pid, &process);
    return result == CUDA_SUCCESS ? check_pairs(args, &process) : result;
}

/* ---- the calls ---- */

CUresult client_cuCheckpointProcessGetRestoreThreadId(int pid, int *tid)
{
    struct process process;
    struct paths daemon;

    if (!find_daemon(&daemon))
        return CALL_DRIVER(cuCheckpointProcessGetRestoreThreadId, pid, tid);
    CUresult result = find(&daemon, pid, &process);
    if (result == CUDA_SUCCESS)
        *tid = pid;
    return result;
}

CUresult client_cuCheckpointProcessGetState(int pid, CUprocessState *state)
{
    struct process process;
    struct paths daemon;

    if (!find_daemon(&daemon))
        return CALL_DRIVER(cuCheckpointProcessGetState, pid, state);
    CUresult result = find(&daemon, pid, &process);
    if (result == CUDA_SUCCESS)
        *state = (CUprocessState)process.state;
    return result;
}

CUresult client_cuCheckpointProcessLock(int pid, CUcheckpointLockArgs *args)
{
    struct paths daemon;

    if (args && (args->reserved0 || !is_zero(args->reserved1, sizeof(args->reserved1))))
        return CUDA_ERROR_INVALID_VALUE;
    if (!find_daemon(&daemon))
        return CALL_DRIVER(cuCheckpointProcessLock, pid, args);
    return act(&daemon, pid, PROCESS_LOCK, args ? args->timeoutMs : 0);
}

CUresult client_cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs *args)
{
    struct paths daemon;

    if (args && !is_zero(args->reserved, sizeof(args->reserved)))
        return CUDA_ERROR_INVALID_VALUE;
    if (!find_daemon(&daemon))
        return CALL_DRIVER(cuCheckpointProcessCheckpoint, pid, args);
    return act(&daemon, pid, PROCESS_CHECKPOINT, 0);
}

CUresult client_cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs *args)
{
    struct paths daemon;

    if (args && (args->reserved1 || !is_zero(args->reserved, sizeof(args->reserved))))
        return CUDA_ERROR_INVALID_VALUE;
    if (!find_daemon(&daemon))
        return CALL_DRIVER(cuCheckpointProcessRestore, pid, args);
    CUresult result = check_restore(&daemon, pid, args);
    return result == CUDA_SUCCESS ? act(&daemon, pid, PROCESS_RESTORE, 0) : result;
}

CUresult client_cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs *args)
{
    struct paths daemon;

    if (args && !is_zero(args->reserved, sizeof(args->reserved)))
        return CUDA_ERROR_INVALID_VALUE;
    if (!find_daemon(&daemon))
        return CALL_DRIVER(cuCheckpointProcessUnlock, pid, args);
    return act(&daemon, pid, PROCESS_UNLOCK, 0);
}
