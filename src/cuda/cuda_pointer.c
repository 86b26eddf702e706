/* SPDX-License-Identifier: Apache-2.0 */
/* Every attribute is a number; the table says how many bytes of it are written. */
#include "cuda_pointer.h"

#include <stddef.h>
#include <string.h>

#define TOKENS_SIZE (offsetof(CUDA_POINTER_ATTRIBUTE_P2P_TOKENS, vaSpaceToken) + sizeof(unsigned))
#define ATTRIBUTES (CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE + 1)

/* As NVIDIA's driver writes them: four bytes of every boolean. */
static const unsigned char widths[ATTRIBUTES] = {
    [CU_POINTER_ATTRIBUTE_CONTEXT] = sizeof(CUcontext),
    [CU_POINTER_ATTRIBUTE_MEMORY_TYPE] = sizeof(unsigned),
    [CU_POINTER_ATTRIBUTE_DEVICE_POINTER] = sizeof(CUdeviceptr),
    [CU_POINTER_ATTRIBUTE_HOST_POINTER] = sizeof(void *),
    [CU_POINTER_ATTRIBUTE_P2P_TOKENS] = TOKENS_SIZE,
    [CU_POINTER_ATTRIBUTE_SYNC_MEMOPS] = sizeof(unsigned),
    [CU_POINTER_ATTRIBUTE_BUFFER_ID] = sizeof(unsigned long long),
    [CU_POINTER_ATTRIBUTE_IS_MANAGED] = sizeof(int),
    [CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL] = sizeof(int),
    [CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE] = sizeof(int),
    [CU_POINTER_ATTRIBUTE_RANGE_START_ADDR] = sizeof(CUdeviceptr),
    [CU_POINTER_ATTRIBUTE_RANGE_SIZE] = sizeof(size_t),
    [CU_POINTER_ATTRIBUTE_MAPPED] = sizeof(int),
    [CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES] = sizeof(unsigned long long),
    [CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE] = sizeof(int),
    [CU_POINTER_ATTRIBUTE_ACCESS_FLAGS] = sizeof(unsigned),
    [CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE] = sizeof(CUmemoryPool),
    [CU_POINTER_ATTRIBUTE_MAPPING_SIZE] = sizeof(size_t),
    [CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR] = sizeof(CUdeviceptr),
    [CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID] = sizeof(unsigned long long),
    [CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE] = sizeof(int),
};

static unsigned width_of(CUpointer_attribute attribute)
{
    return (unsigned)attribute < ATTRIBUTES ? widths[attribute] : 0;
}

/* What is not named here is 0. Tokens are, too: nvidia-peermem and its like ask for none since
 * CUDA 6, and take zeroes for that. */
static uint64_t value_of(const struct cuda_pointer *pointer, CUpointer_attribute attribute)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        return (uintptr_t)pointer->context;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        return pointer->type;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        return pointer->on_device;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        return pointer->on_host;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        return pointer->id;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        return pointer->managed;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        return (uint64_t)pointer->device;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        return pointer->ipc_capable;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        return pointer->type == CU_MEMORYTYPE_DEVICE;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        return pointer->start;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        return pointer->size;
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        return pointer->mapping_start;
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        return pointer->mapping_size;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        return true;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        return pointer->handle_types;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        return pointer->access;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        return (uintptr_t)pointer->pool;
    default:
        return 0;
    }
}

static bool is_range(CUpointer_attribute attribute)
{
    return attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR ||
           attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE;
}

static uint64_t value_of_unknown(const struct cuda_pointer *pointer, CUpointer_attribute attribute)
{
    if (attribute == CU_POINTER_ATTRIBUTE_HOST_POINTER)
        return pointer->address;
    if (is_range(attribute))
        return value_of(pointer, attribute);
    return attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL ? (uint64_t)CU_DEVICE_INVALID : 0;
}

static void write_value(void *ret_data, unsigned width, uint64_t value)
{
    const uint64_t words[2] = {value, 0};

    memcpy(ret_data, words, width);
}

/* Where this is not so NVIDIA's driver writes zeroes, and yet reports an error. */
static bool applies(const struct cuda_pointer *pointer, CUpointer_attribute attribute)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        return pointer->on_device;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        return pointer->on_host;
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
        return pointer->type == CU_MEMORYTYPE_DEVICE;
    default:
        return true;
    }
}

CUresult cuda_pointer_get(const struct cuda_pointer *pointer, CUpointer_attribute attribute,
                          void *ret_data)
{
    unsigned width = width_of(attribute);

    if (!ret_data || !width || !pointer->known)
        return CUDA_ERROR_INVALID_VALUE;
    write_value(ret_data, width, value_of(pointer, attribute));
    return applies(pointer, attribute) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The ranges of unknown attributes stay as they are. */
static void write_one(const struct cuda_pointer *pointer, CUpointer_attribute attribute,
                      void *ret_data)
{
    if (pointer->known)
        write_value(ret_data, width_of(attribute), value_of(pointer, attribute));
    else if (!is_range(attribute) || pointer->size)
        write_value(ret_data, width_of(attribute), value_of_unknown(pointer, attribute));
}

CUresult cuda_pointer_get_all(const struct cuda_pointer *pointer, unsigned count,
                              const CUpointer_attribute *attributes, void *const *ret_data)
{
    for (unsigned i = 0; i < count; i++)
        if (!ret_data[i])
            return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        if (!width_of(attributes[i]) || attributes[i] == CU_POINTER_ATTRIBUTE_P2P_TOKENS)
            return CUDA_ERROR_INVALID_VALUE;
        write_one(pointer, attributes[i], ret_data[i]);
    }
    return CUDA_SUCCESS;
}
