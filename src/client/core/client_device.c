/* SPDX-License-Identifier: Apache-2.0 */
/* Finding devices, and their attributes as programs are told them. */
#include "client_device.h"

#include <stddef.h>

#include "client.h"
#include "managed_hooks.h"

/* Features of a device that Funnel does not offer yet are reported as absent, so that libraries use
 * the others. */
static const struct {
    CUdevice_attribute attribute;
    int value;
} overrides[] = {
    {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, CU_COMPUTEMODE_DEFAULT},
    {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 0},
    {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, 0},
    {CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST, 0},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH, 0},
    {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 0},
    {CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, 0},
    {CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR},
    {CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS, 0},
    {CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_MPS_ENABLED, 1},
    {CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK, 0},
    {CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_HOST_ALLOC_DMA_BUF_SUPPORTED, 0},
};

struct device *device_lookup(CUdevice ordinal)
{
    if (ordinal < 0 || ordinal >= client->device_count)
        return NULL;
    return &client->devices[ordinal];
}

struct device *device_with_index(uint64_t index)
{
    for (int i = 0; i < client->device_count; i++)
        if (client->devices[i].index == index)
            return &client->devices[i];
    return NULL;
}

struct device *device_with_part(uint64_t part)
{
    for (int i = 0; i < client->device_count; i++)
        if (client->devices[i].part == part)
            return &client->devices[i];
    return NULL;
}

uint32_t device_index_of(uint32_t part)
{
    const struct device *device = device_with_part(part);

    return device ? device->index : part;
}

void devices_exchange(uint32_t one, uint32_t other)
{
    struct device *first = device_with_index(one), *second = device_with_index(other);

    if (first)
        first->index = other;
    if (second)
        second->index = one;
}

int device_attribute(const struct device *device, CUdevice_attribute attribute)
{
    /* Page-locked memory both sides may access at any time; memory that moves only in turns. */
    if (attribute == CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS)
        return !managed_hooks.is_movable || !managed_hooks.is_movable();
    for (size_t i = 0; i < sizeof(overrides) / sizeof(*overrides); i++)
        if (overrides[i].attribute == attribute)
            return overrides[i].value;
    return attribute < DEVICE_ATTRIBUTES_MAX ? device->record->attributes[attribute] : 0;
}

bool device_has_attribute(const struct device *device, CUdevice_attribute attribute)
{
    return attribute > 0 && attribute < DEVICE_ATTRIBUTES_MAX &&
           device->record->attributes_known[attribute];
}

unsigned device_compute_capability(const struct device *device)
{
    return 10u * (unsigned)device_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
           (unsigned)device_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
}
