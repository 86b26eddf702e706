/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mappings of physical memory (allocation.h), which are confined to the client's own reservations
 * (reservation.h). A mapping may be copied to and from once a device has access. Memory that is
 * away gets its mappings when it returns.
 */
#include "vmm.h"

#include <stdlib.h>

#include "allocation_place.h"
#include "memory_state.h"
#include "reservation.h"
#include "server_dispatch.h"

/* ---- mappings ---- */

static bool charge_mapping(struct session *session, const struct mapping *mapping)
{
    const struct granule *memory = &mapping->allocation->memory;

    return memory->size || memory_charge(session, memory->part, mapping->size);
}

static void refund_mapping(struct session *session, const struct mapping *mapping)
{
    const struct granule *memory = &mapping->allocation->memory;

    if (!memory->size)
        memory_refund(session, memory->part, mapping->size);
}

static CUresult map_allocation(struct session *session, const struct mapping *like)
{
    struct mapping *mapping = NULL;

    if (session->memory->mappings.count < SESSION_GRANULES_MAX)
        mapping = malloc(sizeof(*mapping));
    if (!mapping)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *mapping = *like;
    if (ranges_add(&session->memory->mappings, mapping->address, mapping->size, mapping)) {
        free(mapping);
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult result =
        allocation_is_there(mapping->allocation) ? mapping_make(mapping) : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS) {
        list_append(&mapping->allocation->mappings, &mapping->link);
    } else {
        ranges_remove(&session->memory->mappings, mapping->address, NULL);
        free(mapping);
    }
    return result;
}

CUresult serve_cuMemMap(struct session *session, const struct wire_cuMemMap *in,
                        struct allocation *handle)
{
    struct mapping mapping = {.address = in->ptr, .size = in->size, .allocation = handle};

    if (!reservation_covers(session, in->ptr, in->size)) {
        session_log_error(session, "cuMemMap: %llu bytes at %#llx are not in one reservation",
                          (unsigned long long)in->size, (unsigned long long)in->ptr);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (handle->memory.size && in->size > handle->memory.size)
        return CUDA_ERROR_INVALID_VALUE;
    if (!charge_mapping(session, &mapping))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = map_allocation(session, &mapping);
    if (result != CUDA_SUCCESS)
        refund_mapping(session, &mapping);
    return result;
}

/* Whether [address, address + size) is exactly one or more whole mappings. */
static bool is_whole(const struct session *session, uint64_t address, uint64_t size)
{
    uint64_t end;

    if (!size || __builtin_add_overflow(address, size, &end))
        return false;
    while (address < end) {
        const struct range *range = ranges_find(&session->memory->mappings, address);
        if (!range || range->start != address || range->size > end - address)
            return false;
        address += range->size;
    }
    return true;
}

static void unmap(struct session *session, struct mapping *mapping)
{
    if (mapping->readers)
        memory_forbid(session, mapping->address);
    ranges_remove(&session->memory->mappings, mapping->address, NULL);
    if (allocation_is_there(mapping->allocation))
        driver.cuMemUnmap(mapping->address, mapping->size);
    refund_mapping(session, mapping);
    list_remove(&mapping->link);
    free(mapping);
}

CUresult serve_cuMemUnmap(struct session *session, const struct wire_cuMemUnmap *in)
{
    if (!is_whole(session, in->ptr, in->size)) {
        session_log_error(session, "cuMemUnmap: %llu bytes at %#llx are not whole mappings",
                          (unsigned long long)in->size, (unsigned long long)in->ptr);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (memory_is_awaited(session, "cuMemUnmap", in->ptr, in->size))
        return CUDA_ERROR_INVALID_VALUE;
    for (uint64_t at = in->ptr; at < in->ptr + in->size;) {
        struct mapping *mapping = ranges_find(&session->memory->mappings, at)->value;
        struct allocation *allocation = mapping->allocation;
        at += mapping->size;
        unmap(session, mapping);
        allocation_settle(session, allocation);
    }
    return CUDA_SUCCESS;
}

static uint64_t with_bit(uint64_t bits, unsigned bit, bool is_set)
{
    return (bits & ~(1ull << bit)) | (uint64_t)is_set << bit;
}

/* Copies are possible while at least one device has access. */
static CUresult note_access(struct session *session, struct mapping *mapping, unsigned device,
                            uint32_t flags)
{
    uint64_t readers = with_bit(mapping->readers, device, flags != CU_MEM_ACCESS_FLAGS_PROT_NONE);
    const struct granule extent = {.kind = GRANULE_MAPPED,
                                   .part = mapping->allocation->memory.part,
                                   .address = mapping->address,
                                   .size = mapping->size,
                                   .fd = -1};
    CUresult result = CUDA_SUCCESS;

    if (readers && !mapping->readers)
        result = memory_allow(session, &extent);
    if (!readers && mapping->readers)
        memory_forbid(session, mapping->address);
    if (result != CUDA_SUCCESS)
        return result;
    mapping->readers = readers;
    mapping->writers =
        with_bit(mapping->writers, device, flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    return CUDA_SUCCESS;
}

static bool is_there(const struct session *session, uint64_t address, uint64_t size)
{
    for (uint64_t at = address; at < address + size;) {
        const struct mapping *mapping = ranges_find(&session->memory->mappings, at)->value;
        if (!allocation_is_there(mapping->allocation))
            return false;
        at += mapping->size;
    }
    return true;
}

CUresult serve_cuMemSetAccess(struct session *session, const struct wire_cuMemSetAccess *in)
{
    const struct device *device = session_find_device(session, "cuMemSetAccess", in->device);
    CUmemAccessDesc access = {.flags = (CUmemAccess_flags)in->flags};
    CUresult result = CUDA_SUCCESS;

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!is_whole(session, in->ptr, in->size))
        return CUDA_ERROR_INVALID_VALUE;
    access.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, device->ordinal};
    if (is_there(session, in->ptr, in->size))
        result = driver.cuMemSetAccess(in->ptr, in->size, &access, 1);
    for (uint64_t at = in->ptr; result == CUDA_SUCCESS && at < in->ptr + in->size;) {
        struct mapping *mapping = ranges_find(&session->memory->mappings, at)->value;
        at += mapping->size;
        result = note_access(session, mapping, in->device, in->flags);
    }
    return result;
}

static struct mapping *mapping_at(const struct session *session, unsigned device, uint64_t address)
{
    const struct range *range = ranges_find(&session->memory->mappings, address);
    struct mapping *mapping = range ? range->value : NULL;

    return mapping && mapping->allocation->memory.part == device ? mapping : NULL;
}

bool vmm_is_reached(struct session *session, unsigned device)
{
    list_for_each (struct allocation, allocation, &session->memory->created, link) {
        if (allocation->memory.part != device)
            continue;
        if (!allocation_is_there(allocation) || list_empty(&allocation->mappings))
            return false;
        list_for_each (struct mapping, mapping, &allocation->mappings, link)
            if (!(mapping->readers >> device & 1) || mapping->size < allocation->memory.size)
                return false;
    }
    return true;
}

CUresult vmm_may_export(struct session *session, unsigned device, uint64_t address, uint64_t size)
{
    const struct mapping *mapping;
    uint64_t end;

    if (__builtin_add_overflow(address, size, &end))
        return CUDA_ERROR_INVALID_VALUE;
    for (; address < end; address = mapping->address + mapping->size) {
        mapping = mapping_at(session, device, address);
        if (!mapping)
            return CUDA_ERROR_INVALID_VALUE;
        if (!allocation_may_export(session, mapping->allocation))
            return CUDA_ERROR_NOT_PERMITTED;
        mapping->allocation->memory.dma_buf = true;
    }
    return CUDA_SUCCESS;
}

/* ---- the end of a session ---- */

static void forget_handle(void *context, uint64_t handle, void *object)
{
    if (handle_type(handle) == WIRE_ALLOCATION)
        session_remove(context, WIRE_ALLOCATION, handle);
}

void vmm_release_all(struct session *session)
{
    struct allocation *allocation;
    const struct range *range;

    while ((range = ranges_next(&session->memory->mappings, 0)))
        unmap(session, range->value);
    handles_for_each(&session->objects, forget_handle, session);
    while ((allocation = list_first(&session->memory->created, struct allocation, link)))
        allocation_end(session, allocation);
    ranges_fini(&session->memory->mappings);
    reservations_end(session);
}
