/* SPDX-License-Identifier: Apache-2.0 */
/* What an address is: questions answered from the allocations of this process. */
#include "client_memory.h"
#include "client_prototypes.h"
#include "client_stream.h"

/* An address and what is behind it, if anything. */
struct pointer {
    uint64_t address;
    bool known;
    enum place place;
    struct allocation allocation;
};

static void look_up(uint64_t address, struct pointer *pointer)
{
    *pointer = (struct pointer){.address = address};
    pointer->known = memory_find(address, &pointer->allocation, &pointer->place);
}

static bool host_reaches(const struct pointer *pointer)
{
    return pointer->place == PLACE_PINNED;
}

/* Registered memory has an address for either. */
static uint64_t device_address(const struct pointer *pointer)
{
    const struct allocation *allocation = &pointer->allocation;

    return allocation->host ? allocation->device + (pointer->address - allocation->address)
                            : pointer->address;
}

static uint64_t host_address(const struct pointer *pointer)
{
    const struct allocation *allocation = &pointer->allocation;

    return allocation->host ? allocation->host + (pointer->address - allocation->address)
                            : pointer->address;
}

static CUmemorytype memory_type(const struct pointer *pointer)
{
    if (pointer->allocation.managed || pointer->place == PLACE_DEVICE)
        return CU_MEMORYTYPE_DEVICE;
    return CU_MEMORYTYPE_HOST;
}

/* The sizes of the results differ: each case writes what CUDA documents for it. */
static CUresult known_attribute(void *data, CUpointer_attribute attribute,
                                const struct pointer *pointer)
{
    const struct allocation *allocation = &pointer->allocation;

    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)data = allocation->context->handle;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)data = memory_type(pointer);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)data = device_address(pointer);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (!host_reaches(pointer))
            return CUDA_ERROR_INVALID_VALUE;
        *(void **)data = (void *)(uintptr_t)host_address(pointer);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        *(unsigned *)data = 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
        *(bool *)data = false;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        *(unsigned long long *)data = allocation->id;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(int *)data = allocation->managed; /* libcudart reads four bytes */
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = allocation->context->device->ordinal;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        *(CUdeviceptr *)data = allocation->address;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        *(size_t *)data = allocation->size;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(bool *)data = true;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *(unsigned long long *)data = 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        *(unsigned *)data = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *(CUmemoryPool *)data = NULL;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* cuPointerGetAttributes does not fail for an address that is not ours: it describes it. */
static void unknown_attribute(void *data, CUpointer_attribute attribute, uint64_t address)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *(uint64_t *)data = 0;
        break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        *(unsigned *)data = 0;
        break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        *(uint64_t *)data = address;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = CU_DEVICE_INVALID;
        break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(int *)data = false;
        break;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
        *(bool *)data = false;
        break;
    default:
        break;
    }
}

CUresult client_cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    struct context *context;
    struct pointer pointer;
    CUresult result = context_current(&context);

    if (!data)
        return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    look_up(ptr, &pointer);
    return pointer.known ? known_attribute(data, attribute, &pointer) : CUDA_ERROR_INVALID_VALUE;
}

CUresult client_cuPointerGetAttributes(unsigned numAttributes, CUpointer_attribute *attributes,
                                       void **data, CUdeviceptr ptr)
{
    struct context *context;
    struct pointer pointer;
    CUresult result = context_current(&context);

    if (numAttributes == 0 || !attributes || !data)
        return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    look_up(ptr, &pointer);
    for (unsigned i = 0; i < numAttributes; i++)
        if (!pointer.known || known_attribute(data[i], attributes[i], &pointer) != CUDA_SUCCESS)
            unknown_attribute(data[i], attributes[i], pointer.known ? 0 : ptr);
    return CUDA_SUCCESS;
}

/* Copies of ours that touch the memory behind the flag are as synchronous as CUDA's. */
CUresult client_cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
                                      CUdeviceptr ptr)
{
    struct context *context;
    struct pointer pointer;
    CUresult result = context_current(&context);

    if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
        return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    look_up(ptr, &pointer);
    return pointer.known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
