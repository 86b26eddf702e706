/* SPDX-License-Identifier: Apache-2.0 */
/* What an address is: questions answered from the allocations of this process. */
#include "client_memory.h"
#include "client_prototypes.h"
#include "client_vmm.h"
#include "cuda_pointer.h"

static CUmemorytype memory_type(const struct memory_kind *kind)
{
    return kind->managed || kind->place == PLACE_DEVICE ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
}

/* The program reaches page-locked memory, and its managed variables. */
static bool is_on_host(const struct memory_kind *kind)
{
    return kind->managed || kind->place == PLACE_PINNED;
}

static void describe_allocation(const struct allocation *allocation, struct cuda_pointer *pointer)
{
    const struct memory_kind *kind = allocation->kind;

    *pointer = (struct cuda_pointer){
        .known = true,
        .address = pointer->address,
        .on_device = pointer->address,
        .on_host = is_on_host(kind) ? pointer->address : 0,
        .type = memory_type(kind),
        .context = allocation->context->handle,
        .device = allocation->context->device->ordinal,
        .start = allocation->address,
        .size = allocation->size,
        .mapping_start = allocation->address,
        .mapping_size = allocation->size,
        .id = allocation->id,
        .managed = kind->managed,
        .ipc_capable = kind->has_ipc_handle,
        .access = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE,
    };
    if (kind->describe)
        kind->describe(allocation, pointer);
}

static void look_up(uint64_t address, struct cuda_pointer *pointer)
{
    struct allocation allocation;

    *pointer = (struct cuda_pointer){.address = address};
    if (address_map_find(address, &allocation))
        describe_allocation(&allocation, pointer);
    else
        vmm_describe_reservation(pointer);
}

/* As in CUDA, none of these needs a current context. Threads that only look at addresses have none,
 * and a thread's context may have been reset. */
CUresult client_cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    struct cuda_pointer pointer;

    if (!data)
        return CUDA_ERROR_INVALID_VALUE;
    look_up(ptr, &pointer);
    return cuda_pointer_get(&pointer, attribute, data);
}

CUresult client_cuPointerGetAttributes(unsigned numAttributes, CUpointer_attribute *attributes,
                                       void **data, CUdeviceptr ptr)
{
    struct cuda_pointer pointer;

    if (numAttributes == 0 || !attributes || !data)
        return CUDA_ERROR_INVALID_VALUE;
    look_up(ptr, &pointer);
    return cuda_pointer_get_all(&pointer, numAttributes, attributes, data);
}

/* Copies of this library that use such memory are as synchronous as CUDA's. */
CUresult client_cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
                                      CUdeviceptr ptr)
{
    struct cuda_pointer pointer;

    if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
        return CUDA_ERROR_INVALID_VALUE;
    look_up(ptr, &pointer);
    return pointer.known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
