/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an address is.
 */
#include "soft_context.h"
#include "soft_memory.h"

static const CUdevice no_device = -2;

static CUcontext context_of(const struct memory *memory)
{
    const struct context *context = memory->context ? memory->context : memory->device->primary;

    return (CUcontext)context->handle;
}

static CUmemorytype type_of(const struct memory *memory)
{
    return memory_is_host(memory) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

static bool host_can_touch(const struct memory *memory)
{
    return memory_is_host(memory) || memory->kind == MEMORY_MANAGED;
}

/* One attribute of known memory: CUDA_ERROR_NOT_SUPPORTED when it has none of that. */
static CUresult get_known(void *data, CUpointer_attribute attribute, CUdeviceptr address,
                          const struct memory *memory)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)data = context_of(memory);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)data = type_of(memory);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)data = address;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        *(void **)data = host_can_touch(memory) ? (void *)address : NULL;
        return host_can_touch(memory) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
        *(int *)data = 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        *(unsigned long long *)data = memory->id;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(int *)data = memory->kind == MEMORY_MANAGED;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = memory->device->ordinal;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        *(CUdeviceptr *)data = memory->address;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        *(size_t *)data = memory->size;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(int *)data = 1;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *(unsigned *)data = memory->kind == MEMORY_MAPPED ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
                                                          : CU_MEM_HANDLE_TYPE_NONE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        *(unsigned *)data = memory->access == SG_READ ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ
                                                      : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *(CUmemoryPool *)data = NULL;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* Of memory that CUDA does not know, the plural call tells what can be told. */
static void get_unknown(void *data, CUpointer_attribute attribute, CUdeviceptr address)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *(uint64_t *)data = 0;
        return;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        *(uint64_t *)data = address;
        return;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = no_device;
        return;
    default:
        *(int *)data = 0;
        return;
    }
}

CUresult soft_cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    struct memory *memory;

    if (!data)
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    memory = memory_find_locked(ptr);
    return memory ? get_known(data, attribute, ptr, memory) : CUDA_ERROR_INVALID_VALUE;
}

CUresult soft_cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes,
                                     void **data, CUdeviceptr ptr)
{
    struct memory *memory;

    if (!attributes || !data || numAttributes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    memory = memory_find_locked(ptr);
    for (unsigned i = 0; i < numAttributes; i++) {
        if (!data[i])
            return CUDA_ERROR_INVALID_VALUE;
        if (memory)
            get_known(data[i], attributes[i], ptr, memory);
        else
            get_unknown(data[i], attributes[i], ptr);
    }
    return CUDA_SUCCESS;
}

CUresult soft_cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
                                    CUdeviceptr ptr)
{
    SOFT_LOCKED;

    if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !memory_find_locked(ptr))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}
