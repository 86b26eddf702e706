/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mappings of physical memory at reserved addresses. What is mapped where is known on both sides,
 * so that wrong calls and questions need no round trip.
 */
#include "client_vmm.h"

#include <stdlib.h>

#include "client_prototypes.h"
#include "client_stream.h"
#include "cuda_pointer.h"
#include "stream_wait.h"
#include "vmm_physical.h"
#include "vmm_reserve.h"
#include "vmm_tables.h"
#include "wire_calls.h"

struct vmm_tables vmm;

void vmm_init(void)
{
    pthread_mutex_init(&vmm.lock, NULL);
    ranges_init(&vmm.reservations);
    ranges_init(&vmm.mappings);
}

/* ---- questions ---- */

struct mapping *vmm_mapping_at_locked(uint64_t address)
{
    const struct range *range = ranges_find(&vmm.mappings, address);

    return range ? range->value : NULL;
}

bool vmm_find(uint64_t address, struct allocation *ret_allocation)
{
    VMM_LOCKED;
    const struct mapping *mapping = vmm_mapping_at_locked(address);

    if (!mapping)
        return false;
    *ret_allocation = (struct allocation){
        .address = mapping->address,
        .size = mapping->size,
        .id = mapping->id,
        .kind = &kind_mapped,
        .context = mapping->physical->device->primary,
    };
    return true;
}

static void describe_mapped(const struct allocation *allocation, struct cuda_pointer *pointer)
{
    VMM_LOCKED;
    const struct mapping *mapping = vmm_mapping_at_locked(pointer->address);

    vmm_describe_reservation_locked(pointer);
    pointer->context = NULL;
    if (!mapping)
        return;
    pointer->handle_types = mapping->physical->prop.requestedHandleTypes;
    pointer->access = mapping->access[mapping->physical->device->ordinal];
    pointer->on_device = pointer->access ? pointer->address : 0;
}

static bool has_access(const struct mapping *mapping)
{
    for (int i = 0; i < client->device_count; i++)
        if (mapping->access[i] != CU_MEM_ACCESS_FLAGS_PROT_NONE)
            return true;
    return false;
}

static bool is_covered(uint64_t address, uint64_t size)
{
    VMM_LOCKED;

    for (;;) {
        const struct mapping *mapping = vmm_mapping_at_locked(address);
        uint64_t left;

        if (!mapping || !has_access(mapping))
            return false;
        left = mapping->size - (address - mapping->address);
        if (size <= left)
            return true;
        size -= left;
        address += left;
    }
}

const struct memory_kind kind_mapped = {
    .place = PLACE_DEVICE,
    .describe = describe_mapped,
    .covers = is_covered,
};

/* ---- mapping ---- */

static CUresult map_locked(struct physical *physical, struct mapping *mapping)
{
    struct wire_cuMemMap in = {
        .handle = physical->handle, .ptr = mapping->address, .size = mapping->size};
    CUresult result;

    if (ranges_add(&vmm.mappings, mapping->address, mapping->size, mapping) < 0)
        return CUDA_ERROR_INVALID_VALUE;
    result = wire_cuMemMap(&client->channel, &in);
    if (result != CUDA_SUCCESS) {
        ranges_remove(&vmm.mappings, mapping->address, NULL);
        return result;
    }
    mapping->is_made = true;
    physical->mappings++;
    return CUDA_SUCCESS;
}

CUresult client_cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
                         CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    struct physical *physical;
    struct mapping *mapping;
    CUresult result;
    VMM_LOCKED;

    physical = vmm_physical_lookup_locked(handle);
    if (!physical || size == 0 || offset || flags ||
        (ptr | size) % memory_device_heap(physical->device)->granularity ||
        (physical->size && size > physical->size) || !vmm_reservation_contains_locked(ptr, size))
        return CUDA_ERROR_INVALID_VALUE;
    mapping = calloc(1, sizeof(*mapping));
    if (!mapping)
        return CUDA_ERROR_OUT_OF_MEMORY;
    mapping->address = ptr;
    mapping->size = size;
    mapping->id = client_next_id();
    mapping->physical = physical;
    result = map_locked(physical, mapping);
    if (result != CUDA_SUCCESS)
        free(mapping);
    return result;
}

/* Whether [address, address + size) is exactly one or more whole mappings. */
static bool is_whole_locked(uint64_t address, uint64_t size)
{
    uint64_t end = address + size;

    if (size == 0 || end < address)
        return false;
    while (address < end) {
        const struct mapping *mapping = vmm_mapping_at_locked(address);

        if (!mapping || mapping->address != address || mapping->size > end - address)
            return false;
        address += mapping->size;
    }
    return true;
}

static void forget_mappings_locked(uint64_t address, uint64_t size)
{
    for (uint64_t end = address + size; address < end;) {
        struct mapping *mapping = vmm_mapping_at_locked(address);

        ranges_remove(&vmm.mappings, address, NULL);
        address += mapping->size;
        mapping->physical->mappings--;
        vmm_physical_settle_locked(mapping->physical);
        free(mapping);
    }
}

/* Memory must not be unmapped under a running kernel: the fault would end every client. */
CUresult client_cuMemUnmap(CUdeviceptr ptr, size_t size)
{
    struct wire_cuMemUnmap in = {.ptr = ptr, .size = size};
    CUresult result = stream_drain_all();

    if (result != CUDA_SUCCESS)
        return result;
    VMM_LOCKED;
    if (!is_whole_locked(ptr, size))
        return CUDA_ERROR_INVALID_VALUE;
    channel_lock(&client->channel);
    result = wire_cuMemUnmap(&client->channel, &in);
    channel_unlock(&client->channel);
    forget_mappings_locked(ptr, size);
    return result;
}

/* ---- access ---- */

static bool valid_access(const CUmemAccessDesc *desc)
{
    return desc->location.type == CU_MEM_LOCATION_TYPE_DEVICE && device_lookup(desc->location.id) &&
           (desc->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ||
            desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
            desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

static CUresult set_access_locked(uint64_t address, uint64_t size, const CUmemAccessDesc *desc)
{
    struct wire_cuMemSetAccess in = {
        .ptr = address,
        .size = size,
        .device = device_lookup(desc->location.id)->index,
        .flags = desc->flags,
    };
    CUresult result = wire_cuMemSetAccess(&client->channel, &in);

    for (uint64_t end = address + size; result == CUDA_SUCCESS && address < end;) {
        struct mapping *mapping = vmm_mapping_at_locked(address);

        mapping->access[desc->location.id] = (unsigned char)desc->flags;
        address += mapping->size;
    }
    return result;
}

CUresult client_cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc,
                               size_t count)
{
    CUresult result = client_error();

    if (!desc || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (!valid_access(&desc[i]))
            return CUDA_ERROR_INVALID_VALUE;
    VMM_LOCKED;
    if (!is_whole_locked(ptr, size))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++)
        result = set_access_locked(ptr, size, &desc[i]);
    return result;
}

CUresult client_cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location,
                               CUdeviceptr ptr)
{
    const struct mapping *mapping;

    if (location->type != CU_MEM_LOCATION_TYPE_DEVICE || !device_lookup(location->id))
        return CUDA_ERROR_INVALID_VALUE;
    VMM_LOCKED;
    mapping = vmm_mapping_at_locked(ptr);
    if (!mapping)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = mapping->access[location->id];
    return CUDA_SUCCESS;
}
