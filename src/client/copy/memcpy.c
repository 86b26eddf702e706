/* SPDX-License-Identifier: Apache-2.0 */
/* The cuMemcpy family in one dimension: each call says which sides it has and whether it waits. */
#include "client_capture.h"
#include "client_copy.h"
#include "client_prototypes.h"
#include "client_symbol.h"

static CUresult copy_on(CUstream handle, uint64_t dst, enum side dst_side, uint64_t src,
                        enum side src_side, size_t size, bool sync)
{
    struct stream *stream;
    CUresult result = stream_enter(handle, &stream);

    if (result != CUDA_SUCCESS)
        return result;
    bool is_held = symbol_copy_begin(&dst, &src, !stream_is_plain(stream));
    result = copy_bytes(dst, dst_side, src, src_side, size, stream, sync);
    if (is_held)
        symbol_copy_end();
    return result;
}

CUresult client_cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
    return copy_on(NULL, dst, SIDE_ANY, src, SIDE_ANY, ByteCount, true);
}

CUresult client_cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
    return copy_on(hStream, dst, SIDE_ANY, src, SIDE_ANY, ByteCount, false);
}

CUresult client_cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount)
{
    return copy_on(NULL, dstDevice, SIDE_DEVICE, (uintptr_t)srcHost, SIDE_HOST, ByteCount, true);
}

CUresult client_cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount,
                                     CUstream hStream)
{
    return copy_on(hStream, dstDevice, SIDE_DEVICE, (uintptr_t)srcHost, SIDE_HOST, ByteCount,
                   false);
}

CUresult client_cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
{
    return copy_on(NULL, (uintptr_t)dstHost, SIDE_HOST, srcDevice, SIDE_DEVICE, ByteCount, true);
}

CUresult client_cuMemcpyDtoHAsync_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount,
                                     CUstream hStream)
{
    return copy_on(hStream, (uintptr_t)dstHost, SIDE_HOST, srcDevice, SIDE_DEVICE, ByteCount,
                   false);
}

CUresult client_cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount)
{
    return copy_on(NULL, dstDevice, SIDE_DEVICE, srcDevice, SIDE_DEVICE, ByteCount, true);
}

CUresult client_cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
                                     CUstream hStream)
{
    return copy_on(hStream, dstDevice, SIDE_DEVICE, srcDevice, SIDE_DEVICE, ByteCount, false);
}

/* Addresses are unique in the process, so the contexts are only checked. As with NVIDIA's driver, a
 * context may be NULL. */
static bool may_be_peer(CUcontext context)
{
    return !context || context_lookup(context);
}

CUresult client_cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                             CUcontext srcContext, size_t ByteCount)
{
    if (!may_be_peer(dstContext) || !may_be_peer(srcContext))
        return CUDA_ERROR_INVALID_CONTEXT;
    return copy_on(NULL, dstDevice, SIDE_DEVICE, srcDevice, SIDE_DEVICE, ByteCount, true);
}

CUresult client_cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext,
                                  CUdeviceptr srcDevice, CUcontext srcContext, size_t ByteCount,
                                  CUstream hStream)
{
    if (!may_be_peer(dstContext) || !may_be_peer(srcContext))
        return CUDA_ERROR_INVALID_CONTEXT;
    return copy_on(hStream, dstDevice, SIDE_DEVICE, srcDevice, SIDE_DEVICE, ByteCount, false);
}
