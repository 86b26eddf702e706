/* SPDX-License-Identifier: Apache-2.0 */
/* What an address is: questions answered from the allocations of this process. */
#include <unistd.h>

#include "client_ipc.h"
#include "client_memory.h"
#include "client_pool.h"
#include "client_prototypes.h"
#include "client_vmm.h"
#include "cuda_pointer.h"

/* The address at the same offset when the allocation begins at `start`; 0: the address itself. */
static uint64_t seen_from(const struct allocation *allocation, uint64_t address, uint64_t start)
{
    return start ? start + (address - allocation->address) : address;
}

static CUmemorytype memory_type(const struct allocation *allocation, enum place place)
{
    return allocation->managed || place == PLACE_DEVICE ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
}

/* The program reaches page-locked memory, and its managed variables. */
static uint64_t host_address(const struct allocation *allocation, enum place place,
                             uint64_t address)
{
    return place == PLACE_PINNED || allocation->managed
               ? seen_from(allocation, address, allocation->host)
               : 0;
}

static bool has_ipc_handles(const struct allocation *allocation, enum place place)
{
    struct allocation other;

    return place == PLACE_DEVICE && !allocation->managed && !allocation->pool &&
           !memory_find_global(allocation->address, &other) &&
           !vmm_is_reserved(allocation->address) && !ipc_find(allocation->address, &other);
}

static bool find(uint64_t address, struct allocation *ret_allocation, enum place *ret_place)
{
    if (memory_find(address, ret_allocation, ret_place))
        return true;
    *ret_place = PLACE_DEVICE;
    return memory_find_global(address, ret_allocation);
}

/* Memory of pools, mapped memory and managed variables belong to no context. */
static CUcontext context_of(const struct allocation *allocation, uint64_t address)
{
    struct allocation variable;

    if (allocation->pool || vmm_is_reserved(address) ||
        (allocation->managed && memory_find_global(address, &variable)))
        return NULL;
    return allocation->context->handle;
}

static CUDA_POINTER_ATTRIBUTE_ACCESS_FLAGS access_of(const struct allocation *allocation)
{
    return allocation->host && allocation->flags & CU_MEMHOSTREGISTER_READ_ONLY
               ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ
               : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
}

/* Registered memory is page-locked in whole pages. */
static void describe_mapping(const struct allocation *allocation, struct cuda_pointer *pointer)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t end = pointer->start + pointer->size;

    pointer->mapping_start = pointer->start;
    if (allocation->host) {
        pointer->mapping_start = pointer->start & ~(page - 1);
        end = (end + page - 1) & ~(page - 1);
    }
    pointer->mapping_size = end - pointer->mapping_start;
}

static void look_up(uint64_t address, struct cuda_pointer *pointer)
{
    struct allocation allocation;
    enum place place;

    *pointer = (struct cuda_pointer){.address = address};
    if (!find(address, &allocation, &place) || pool_was_freed(&allocation)) {
        if (vmm_is_reserved(address))
            vmm_find_reservation(address, &pointer->start, &pointer->size);
        return;
    }
    *pointer = (struct cuda_pointer){
        .known = true,
        .address = address,
        .on_device = seen_from(&allocation, address, allocation.device),
        .on_host = host_address(&allocation, place, address),
        .type = memory_type(&allocation, place),
        .context = context_of(&allocation, address),
        .device = allocation.context->device->ordinal,
        .start = allocation.address,
        .size = allocation.size,
        .id = allocation.id,
        .managed = allocation.managed,
        .ipc_capable = has_ipc_handles(&allocation, place),
        .access = access_of(&allocation),
        .pool = (CUmemoryPool)(uintptr_t)allocation.pool,
    };
    describe_mapping(&allocation, pointer);
    if (!vmm_is_reserved(address))
        return;
    vmm_describe(address, &pointer->handle_types, &pointer->access);
    vmm_find_reservation(address, &pointer->start, &pointer->size);
    pointer->on_device = pointer->access ? address : 0;
}

/* As in CUDA, none of these needs a current context: threads that only look at addresses have none,
 * and the context that a thread has may have been reset. */
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

/* Copies of this library that touch such memory are as synchronous as CUDA's. */
CUresult client_cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
                                      CUdeviceptr ptr)
{
    struct cuda_pointer pointer;

    if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
        return CUDA_ERROR_INVALID_VALUE;
    look_up(ptr, &pointer);
    return pointer.known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
