/* SPDX-License-Identifier: Apache-2.0 */
#include "allocation_place.h"

#include <limits.h>

#include "attach.h"
#include "memory_state.h"

/* ---- the client's places ---- */

CUresult mapping_make(const struct mapping *mapping)
{
    return driver.cuMemMap(mapping->address, mapping->size, 0, mapping->allocation->memory.handle,
                           0);
}

static CUmemAccess_flags flags_for(const struct mapping *mapping, unsigned device)
{
    if (mapping->writers >> device & 1)
        return CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return mapping->readers >> device & 1 ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                          : CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

CUresult mapping_grant(const struct session *session, const struct mapping *mapping)
{
    CUmemAccessDesc access[SERVER_MAX_DEVICES];
    size_t count = 0;

    for (unsigned i = 0; i < session->server->devices.count; i++)
        if (flags_for(mapping, i) != CU_MEM_ACCESS_FLAGS_PROT_NONE)
            access[count++] =
                (CUmemAccessDesc){{CU_MEM_LOCATION_TYPE_DEVICE, (int)i}, flags_for(mapping, i)};
    return count ? driver.cuMemSetAccess(mapping->address, mapping->size, access, count)
                 : CUDA_SUCCESS;
}

static CUresult make_and_grant(const struct session *session, const struct mapping *mapping)
{
    CUresult result = mapping_make(mapping);

    if (result != CUDA_SUCCESS)
        return result;
    result = mapping_grant(session, mapping);
    if (result != CUDA_SUCCESS)
        driver.cuMemUnmap(mapping->address, mapping->size);
    return result;
}

/* As many as `count`. */
static void unmap_first(const struct allocation *allocation, unsigned count)
{
    list_for_each (struct mapping, mapping, &allocation->mappings, link) {
        if (!count--)
            return;
        driver.cuMemUnmap(mapping->address, mapping->size);
    }
}

CUresult allocation_map_all(struct session *session, struct allocation *allocation)
{
    CUresult result = CUDA_SUCCESS;
    unsigned mapped = 0;

    list_for_each (struct mapping, mapping, &allocation->mappings, link) {
        result = make_and_grant(session, mapping);
        if (result != CUDA_SUCCESS)
            break;
        mapped++;
    }
    if (result == CUDA_SUCCESS)
        result = allocation_open(session, allocation);
    if (result != CUDA_SUCCESS)
        unmap_first(allocation, mapped);
    return result;
}

void allocation_unmap_all(struct session *session, struct allocation *allocation)
{
    allocation_close(session, allocation);
    unmap_first(allocation, UINT_MAX);
}

/* ---- a place to copy from and to ---- */

static uint64_t find_place(const struct allocation *allocation)
{
    const struct granule *memory = &allocation->memory;

    list_for_each (struct mapping, mapping, &allocation->mappings, link)
        if (mapping->size == memory->size && mapping->writers >> memory->part & 1)
            return mapping->address;
    return 0;
}

static CUresult open_scratch(struct session *session, struct allocation *allocation)
{
    struct reserve_area *area = &session->server->memory->reserve_area;
    struct granule *memory = &allocation->memory;
    CUresult result =
        reserve_area_take(area, 0, memory->size, RESERVE_GRANULARITY, &memory->address);

    if (result != CUDA_SUCCESS)
        return result;
    result = device_map(session_device(session, memory->part), memory->handle, memory->address,
                        memory->size);
    allocation->has_scratch = result == CUDA_SUCCESS;
    if (!allocation->has_scratch) {
        reserve_area_give_back(area, memory->address, memory->size);
        memory->address = 0;
    }
    return result;
}

CUresult allocation_open(struct session *session, struct allocation *allocation)
{
    allocation->memory.address = find_place(allocation);
    return allocation->memory.address ? CUDA_SUCCESS : open_scratch(session, allocation);
}

void allocation_close(struct session *session, struct allocation *allocation)
{
    struct granule *memory = &allocation->memory;

    if (allocation->has_scratch) {
        driver.cuMemUnmap(memory->address, memory->size);
        reserve_area_give_back(&session->server->memory->reserve_area, memory->address,
                               memory->size);
    }
    allocation->has_scratch = false;
    memory->address = 0;
}

/* ---- the same of any granule ---- */

CUresult granule_open(struct session *session, struct granule *granule, void *context)
{
    return granule->kind == GRANULE_CREATED ? allocation_open(session, allocation_of(granule))
                                            : CUDA_SUCCESS;
}

CUresult granule_close(struct session *session, struct granule *granule, void *context)
{
    if (granule->kind == GRANULE_CREATED)
        allocation_close(session, allocation_of(granule));
    return CUDA_SUCCESS;
}
