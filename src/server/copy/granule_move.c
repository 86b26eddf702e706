/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves the memory of device granules to the host and back, for managed memory that exceeds the
 * device's capacity.
 */
#include "attach.h"
#include "device_granule.h"
#include "server_dispatch.h"
#include "stream.h"

static CUresult copy_memory(CUdeviceptr dst, CUdeviceptr src, uint64_t size)
{
    CUstream stream;
    CUresult result = driver.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0), end;

    if (result != CUDA_SUCCESS)
        return result;
    result = driver.cuMemcpyAsync(dst, src, size, stream);
    if (result == CUDA_SUCCESS)
        result = driver.cuStreamSynchronize(stream);
    end = driver.cuStreamDestroy_v2(stream);
    return result != CUDA_SUCCESS ? result : end;
}

/* Graphs are built again before their next launch: see memory_exchanges(). */
static bool is_in_use(struct session *session, const struct granule *granule)
{
    return granule->share || !streams_are_idle(session) ||
           memory_is_awaited(session, "fnGranuleMove", granule->address, granule->size);
}

CUresult serve_fnGranuleMove(struct session *session, const struct wire_fnGranuleMove *in)
{
    struct granule *granule = device_granule_find(session, in->address);
    CUresult result;

    if (!granule || granule->on_host == (in->host != 0)) {
        session_log_error(session, "fnGranuleMove: no granule at %#llx is there to be moved",
                          (unsigned long long)in->address);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (is_in_use(session, granule))
        return CUDA_ERROR_NOT_READY;
    result = session_enter(session, session_device(session, granule->part));
    if (result == CUDA_SUCCESS)
        result = device_granule_exchange(session, granule, in->host, copy_memory);
    return result != CUDA_SUCCESS ? result : device_granule_send(session, granule);
}
