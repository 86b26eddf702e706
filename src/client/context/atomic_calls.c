/* SPDX-License-Identifier: Apache-2.0 */
/* Atomic operations of devices on memory of the host and of each other. The server knows them. */
#include "client.h"
#include "client_device.h"
#include "client_prototypes.h"
#include "cuda_atomics.h"
#include "wire_calls.h"

CUresult client_cuDeviceGetHostAtomicCapabilities(unsigned *capabilities,
                                                  const CUatomicOperation *operations,
                                                  unsigned count, CUdevice dev)
{
    struct wire_cuDeviceGetHostAtomicCapabilities in;
    struct wire_cuDeviceGetHostAtomicCapabilities_reply out;
    const struct device *device = device_lookup(dev);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    in.device = device->index;
    CUresult result = wire_cuDeviceGetHostAtomicCapabilities(&client->channel, &in, &out);
    return result == CUDA_SUCCESS
               ? cuda_atomics_tell(out.capabilities, operations, count, capabilities)
               : result;
}

CUresult client_cuDeviceGetP2PAtomicCapabilities(unsigned *capabilities,
                                                 const CUatomicOperation *operations,
                                                 unsigned count, CUdevice srcDevice,
                                                 CUdevice dstDevice)
{
    struct wire_cuDeviceGetP2PAtomicCapabilities in;
    struct wire_cuDeviceGetP2PAtomicCapabilities_reply out;
    const struct device *device = device_lookup(srcDevice), *peer = device_lookup(dstDevice);

    if (!device || !peer || device == peer)
        return CUDA_ERROR_INVALID_DEVICE;
    in.device = device->index;
    in.peer = peer->index;
    CUresult result = wire_cuDeviceGetP2PAtomicCapabilities(&client->channel, &in, &out);
    return result == CUDA_SUCCESS
               ? cuda_atomics_tell(out.capabilities, operations, count, capabilities)
               : result;
}
