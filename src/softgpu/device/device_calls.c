/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions about devices that need no context.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "soft.h"
#include "soft_device.h"

CUresult soft_cuDeviceGet(CUdevice *device, int ordinal)
{
    if (!device_get(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult soft_cuDeviceGetCount(int *count)
{
    *count = devices_count();
    return CUDA_SUCCESS;
}

CUresult soft_cuDeviceGetName(char *name, int len, CUdevice dev)
{
    if (!name || len <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_get(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(name, len, "Funnel Software GPU");
    return CUDA_SUCCESS;
}

CUresult soft_cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
    struct device *device = device_get(dev);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    *uuid = device->uuid;
    return CUDA_SUCCESS;
}

CUresult soft_cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
    struct device *device = device_get(dev);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    *bytes = device->memory_size;
    return CUDA_SUCCESS;
}

CUresult soft_cuDeviceTotalMem(unsigned int *bytes, CUdevice dev)
{
    size_t all;
    CUresult result = soft_cuDeviceTotalMem_v2(&all, dev);

    if (!result)
        *bytes = all < UINT_MAX ? (unsigned)all : UINT_MAX;
    return result;
}

CUresult soft_cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
    struct device *device = device_get(dev);

    if ((unsigned)attrib == 0 || (unsigned)attrib >= CU_DEVICE_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    *pi = device_attribute(device, attrib);
    return CUDA_SUCCESS;
}

CUresult soft_cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
    if (!device_get(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    *major = SOFT_SM_VERSION / 10;
    *minor = SOFT_SM_VERSION % 10;
    return CUDA_SUCCESS;
}

CUresult soft_cuDeviceGetProperties(CUdevprop *prop, CUdevice dev)
{
    if (!device_get(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    *prop = (CUdevprop){
        .maxThreadsPerBlock = SOFT_THREADS_PER_BLOCK,
        .maxThreadsDim = {1024, 1024, 64},
        .maxGridSize = {0x7fffffff, 65535, 65535},
        .sharedMemPerBlock = SOFT_SHARED_PER_BLOCK,
        .totalConstantMemory = 65536,
        .SIMDWidth = 32,
        .memPitch = 0x7fffffff,
        .regsPerBlock = SOFT_REGISTERS_PER_SM,
        .clockRate = 1980000,
        .textureAlign = 512,
    };
    return CUDA_SUCCESS;
}

static void bus_id_text(const struct device *device, char *text, size_t size)
{
    snprintf(text, size, "0000:%02x:00.0", device->number + 1);
}

CUresult soft_cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev)
{
    struct device *device = device_get(dev);

    if (!pciBusId || len < 13)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    bus_id_text(device, pciBusId, len);
    return CUDA_SUCCESS;
}

/* Accepts the domain left out, as the documented forms do. */
CUresult soft_cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId)
{
    unsigned domain = 0, bus, slot;

    if (sscanf(pciBusId, "%x:%x:%x", &domain, &bus, &slot) != 3) {
        domain = 0;
        if (sscanf(pciBusId, "%x:%x", &bus, &slot) != 2)
            return CUDA_ERROR_INVALID_VALUE;
    }
    for (unsigned i = 0; i < devices_count(); i++) {
        if (domain == 0 && slot == 0 && bus == device_get(i)->number + 1) {
            *dev = i;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_DEVICE;
}

CUresult soft_cuDeviceGetTexture1DLinearMaxWidth(size_t *maxWidthInElements, CUarray_format format,
                                                 unsigned numChannels, CUdevice dev)
{
    if (!device_get(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    *maxWidthInElements = 268435456;
    return CUDA_SUCCESS;
}

CUresult soft_cuDeviceGetExecAffinitySupport(int *pi, CUexecAffinityType type, CUdevice dev)
{
    if ((unsigned)type >= CU_EXEC_AFFINITY_TYPE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_get(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    *pi = 0;
    return CUDA_SUCCESS;
}

/* There is no profiler that could be started. */
CUresult soft_cuProfilerStart(void)
{
    return CUDA_SUCCESS;
}

CUresult soft_cuProfilerStop(void)
{
    return CUDA_SUCCESS;
}
