/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tool that checkpoints other programs by the driver's calls, and uses no GPU itself. It reads
 * "CALL PID [ARGUMENT]" on its standard input, and answers "CALL RESULT VALUE" in numbers. PID 0 is
 * its own. "fill SEED" and "check SEED" make it a CUDA program with memory of its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda_abi.h"
#include "cuda_prototypes.h"

#define COUNT (1u << 20)

static CUdeviceptr memory;
static CUuuid uuid;

static CUresult fill(unsigned seed)
{
    CUcontext context;
    CUresult result = cuInit(0);

    if (!result)
        result = cuDeviceGetUuid_v2(&uuid, 0);
    if (!result)
        result = cuDevicePrimaryCtxRetain(&context, 0);
    if (!result)
        result = cuCtxSetCurrent(context);
    if (!result)
        result = cuMemAlloc_v2(&memory, COUNT * 4);
    return result ? result : cuMemsetD32_v2(memory, seed, COUNT);
}

static CUresult check(unsigned seed)
{
    static unsigned seen[COUNT];
    CUresult result = cuMemcpyDtoH_v2(seen, memory, sizeof(seen));

    for (unsigned i = 0; i < COUNT && !result; i++)
        if (seen[i] != seed)
            result = CUDA_ERROR_UNKNOWN;
    return result;
}

static CUresult lock(int pid, unsigned timeout_ms)
{
    CUcheckpointLockArgs args = {.timeoutMs = timeout_ms};

    return cuCheckpointProcessLock(pid, timeout_ms ? &args : NULL);
}

/* Onto which device? 0 = it is not said, 1 = the same, 2 = another one, 3 = of one that it has not.
 */
static CUresult restore(int pid, unsigned where)
{
    CUcheckpointGpuPair pair = {uuid, uuid};
    CUcheckpointRestoreArgs args = {.gpuPairs = &pair, .gpuPairsCount = 1};

    if (where == 2)
        pair.newUuid.bytes[0] ^= 1;
    if (where == 3)
        pair.oldUuid.bytes[0] ^= 1;
    return cuCheckpointProcessRestore(pid, where ? &args : NULL);
}

static CUresult checkpoint(int pid, unsigned reserved)
{
    CUcheckpointCheckpointArgs args = {.reserved = {reserved}};

    return cuCheckpointProcessCheckpoint(pid, &args);
}

static CUresult act(const char *call, int pid, unsigned argument, int *ret_value)
{
    CUprocessState state = CU_PROCESS_STATE_FAILED;
    CUresult result = CUDA_ERROR_NOT_FOUND;

    if (!strcmp(call, "state")) {
        result = cuCheckpointProcessGetState(pid, &state);
        *ret_value = (int)state;
    } else if (!strcmp(call, "thread")) {
        result = cuCheckpointProcessGetRestoreThreadId(pid, ret_value);
    } else if (!strcmp(call, "lock")) {
        result = lock(pid, argument);
    } else if (!strcmp(call, "checkpoint")) {
        result = checkpoint(pid, argument);
    } else if (!strcmp(call, "restore")) {
        result = restore(pid, argument);
    } else if (!strcmp(call, "unlock")) {
        result = cuCheckpointProcessUnlock(pid, NULL);
    }
    return result;
}

int main(void)
{
    char line[64], call[16];
    int pid;

    while (fgets(line, sizeof(line), stdin)) {
        unsigned argument = 0;
        int value = 0;
        CUresult result;

        if (sscanf(line, "%15s %d %u", call, &pid, &argument) < 2)
            return 1;
        if (!strcmp(call, "fill"))
            result = fill((unsigned)pid);
        else if (!strcmp(call, "check"))
            result = check((unsigned)pid);
        else
            result = act(call, pid ? pid : getpid(), argument, &value);
        printf("%s %d %d\n", call, (int)result, value);
        fflush(stdout);
    }
    return 0;
}
