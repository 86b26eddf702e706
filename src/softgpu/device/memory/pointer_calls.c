/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attributes of an address.
 */
#include <unistd.h>

#include "cuda_pointer.h"
#include "soft_context.h"
#include "soft_memory.h"

/* Memory of pools, mapped memory and a library's managed variables belong to no context. */
static CUcontext context_of(const struct memory *memory)
{
    if (memory->pool || memory->kind == MEMORY_MAPPED || memory->kind == MEMORY_SHARED_VARIABLE)
        return NULL;
    return (CUcontext)(memory->context ? memory->context : memory->device->primary)->handle;
}

static CUDA_POINTER_ATTRIBUTE_ACCESS_FLAGS access_of(const struct memory *memory)
{
    if (memory->access & SG_WRITE)
        return CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
    return memory->access ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ
                          : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE;
}

static void describe_places(const struct memory *memory, struct cuda_pointer *pointer)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

    pointer->on_device = memory->access ? pointer->address : 0;
    pointer->on_host = memory_is_host(memory) || pointer->managed ? pointer->address : 0;
    pointer->mapping_start = pointer->start;
    pointer->mapping_size = pointer->size;
    if (memory->kind == MEMORY_MAPPED)
        memory_find_reservation_locked(pointer->address, &pointer->start, &pointer->size);
    if (memory->kind != MEMORY_REGISTERED)
        return;
    pointer->mapping_start = pointer->start & ~(page - 1);
    pointer->mapping_size =
        memory_mapped_size(pointer->start + pointer->size - pointer->mapping_start);
}

static void look_up_locked(CUdeviceptr address, struct cuda_pointer *pointer)
{
    const struct memory *memory = memory_find_locked(address);

    *pointer = (struct cuda_pointer){.address = address};
    if (!memory || !memory_extent_locked(memory, address, &pointer->start, &pointer->size)) {
        memory_find_reservation_locked(address, &pointer->start, &pointer->size);
        return;
    }
    pointer->known = true;
    pointer->type = memory_is_host(memory) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    pointer->context = context_of(memory);
    pointer->device = memory->device->ordinal;
    pointer->id = memory->id;
    pointer->managed = memory_is_managed(memory);
    pointer->ipc_capable = memory_is_in_arena(memory) && !memory->pool;
    pointer->pool = (CUmemoryPool)(uintptr_t)memory->pool;
    pointer->handle_types = memory_handle_types(memory);
    pointer->access = access_of(memory);
    describe_places(memory, pointer);
}

CUresult soft_cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    struct cuda_pointer pointer;
    SOFT_LOCKED;

    look_up_locked(ptr, &pointer);
    return cuda_pointer_get(&pointer, attribute, data);
}

CUresult soft_cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes,
                                     void **data, CUdeviceptr ptr)
{
    struct cuda_pointer pointer;

    if (!attributes || !data || numAttributes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    look_up_locked(ptr, &pointer);
    return cuda_pointer_get_all(&pointer, numAttributes, attributes, data);
}

CUresult soft_cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
                                    CUdeviceptr ptr)
{
    SOFT_LOCKED;

    if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !memory_find_locked(ptr))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}
