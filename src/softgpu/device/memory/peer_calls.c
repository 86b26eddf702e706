/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers: contexts whose kernels may access the memory of another device's context. All memory is in
 * one process, so granting access only adds ranges.
 */
#include "soft_context.h"
#include "soft_memory.h"

CUresult soft_cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev)
{
    if (!device_get(dev) || !device_get(peerDev))
        return CUDA_ERROR_INVALID_DEVICE;
    *canAccessPeer = dev != peerDev;
    return CUDA_SUCCESS;
}

CUresult soft_cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attrib, CUdevice srcDevice,
                                      CUdevice dstDevice)
{
    if (attrib < CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ||
        attrib > CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_get(srcDevice) || !device_get(dstDevice) || srcDevice == dstDevice)
        return CUDA_ERROR_INVALID_DEVICE;
    *value = attrib == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED ||
             attrib == CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED ||
             attrib == CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED;
    return CUDA_SUCCESS;
}

static CUresult find_both_locked(CUcontext handle, struct context **ret_context,
                                 struct context **ret_peer)
{
    CUresult result = context_use_locked(ret_context);

    if (result)
        return result;
    *ret_peer = context_get(handle);
    return *ret_peer && (*ret_peer)->active ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult soft_cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags)
{
    struct context *context, *peer, **place;
    SOFT_LOCKED;
    CUresult result = find_both_locked(peerContext, &context, &peer);

    if (Flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (result)
        return result;
    if (context->device == peer->device)
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    if (context_reaches(context, peer))
        return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    place = context_peer(context, NULL);
    if (!place)
        return CUDA_ERROR_TOO_MANY_PEERS;
    *place = peer;
    memory_show_peer_locked(peer, context);
    return CUDA_SUCCESS;
}

CUresult soft_cuCtxDisablePeerAccess(CUcontext peerContext)
{
    struct context *context, *peer;
    SOFT_LOCKED;
    CUresult result = find_both_locked(peerContext, &context, &peer);

    if (result)
        return result;
    if (!context_reaches(context, peer))
        return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    context_forget_peer_locked(context, peer);
    memory_hide_peer_locked(peer, context);
    return CUDA_SUCCESS;
}
