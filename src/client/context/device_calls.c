/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about devices, answered from the table that came with the attach. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "affinity.h"
#include "client_prototypes.h"
#include "text.h"

CUresult client_cuDeviceGet(CUdevice *device, int ordinal)
{
    if (!device_lookup(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult client_cuDeviceGetCount(int *count)
{
    *count = client->device_count;
    return CUDA_SUCCESS;
}

CUresult client_cuDeviceGetName(char *name, int len, CUdevice dev)
{
    struct device *device = device_lookup(dev);

    if (!name || len <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    text_copy(name, (size_t)len, device->record->name);
    return CUDA_SUCCESS;
}

CUresult client_cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
    struct device *device = device_lookup(dev);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    memcpy(uuid, device->record->uuid, sizeof(*uuid));
    return CUDA_SUCCESS;
}

CUresult client_cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
    struct device *device = device_lookup(dev);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    *bytes = device->record->shown_memory;
    return CUDA_SUCCESS;
}

CUresult client_cuDeviceTotalMem(unsigned int *bytes, CUdevice dev)
{
    size_t all;
    CUresult result = client_cuDeviceTotalMem_v2(&all, dev);

    if (result == CUDA_SUCCESS)
        *bytes = all < UINT_MAX ? (unsigned)all : UINT_MAX;
    return result;
}

/* Numbers that the server's driver does not know yet are 0, for libcudart takes every error here
 * for a broken device. */
CUresult client_cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
    struct device *device = device_lookup(dev);

    if (attrib < 1 || attrib >= CU_DEVICE_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!device_has_attribute(device, attrib))
        return CUDA_ERROR_INVALID_VALUE;
    if (attrib == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
        *pi = affinity_sm_count(device);
    else
        *pi = device_attribute(device, attrib);
    return CUDA_SUCCESS;
}

CUresult client_cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev)
{
    struct device *device = device_lookup(dev);

    if (!pciBusId || len <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    return text_copy(pciBusId, (size_t)len, device->record->pci_bus_id) ? CUDA_SUCCESS
                                                                        : CUDA_ERROR_INVALID_VALUE;
}

/* "domain:bus:device.function"; the domain and the function may be left out. */
CUresult client_cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId)
{
    unsigned domain = 0, bus, slot, function;

    if (sscanf(pciBusId, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3) {
        domain = 0;
        if (sscanf(pciBusId, "%x:%x", &bus, &slot) != 2)
            return CUDA_ERROR_INVALID_VALUE;
    }
    for (int i = 0; i < client->device_count; i++) {
        const int32_t *a = client->devices[i].record->attributes;

        if ((unsigned)a[CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID] == domain &&
            (unsigned)a[CU_DEVICE_ATTRIBUTE_PCI_BUS_ID] == bus &&
            (unsigned)a[CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID] == slot) {
            *dev = i;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_DEVICE;
}

CUresult client_cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
    struct device *device = device_lookup(dev);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    *major = device_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    *minor = device_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    return CUDA_SUCCESS;
}

CUresult client_cuDeviceGetProperties(CUdevprop *prop, CUdevice dev)
{
    struct device *device = device_lookup(dev);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    prop->maxThreadsPerBlock = device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    for (int i = 0; i < 3; i++) {
        prop->maxThreadsDim[i] = device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i);
        prop->maxGridSize[i] = device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i);
    }
    prop->sharedMemPerBlock =
        device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    prop->totalConstantMemory = device_attribute(device, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
    prop->SIMDWidth = device_attribute(device, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    prop->memPitch = device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_PITCH);
    prop->regsPerBlock = device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
    prop->clockRate = device_attribute(device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    prop->textureAlign = device_attribute(device, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
    return CUDA_SUCCESS;
}

CUresult client_cuDeviceGetTexture1DLinearMaxWidth(size_t *maxWidthInElements,
                                                   CUarray_format format, unsigned numChannels,
                                                   CUdevice dev)
{
    struct device *device = device_lookup(dev);

    if (numChannels == 0 || numChannels > 4)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    *maxWidthInElements =
        (size_t)device_attribute(device, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH);
    return CUDA_SUCCESS;
}
