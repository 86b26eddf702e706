/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Physical memory and its mappings, which are confined to the client's own reservations
 * (reservation.h). A mapping may be copied to and from once a device has access.
 */
#include "vmm.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "attach.h"
#include "blob.h"
#include "fd.h"
#include "memory_state.h"
#include "reservation.h"
#include "server_dispatch.h"
#include "shm.h"
#include "sock.h"

/* Physical memory. Created memory is charged while it exists. Imported memory is charged while it
 * is mapped, because its size is known only then. */
struct allocation {
    CUmemGenericAllocationHandle driver;
    unsigned device;
    uint64_t size; /* 0 = imported */
    unsigned mappings;
    bool released; /* the handle is gone, but mappings are left */
    bool exported; /* its client has had a descriptor */
};

struct mapping {
    uint64_t address, size;
    struct allocation *allocation;
    uint64_t readers; /* bit d: device d has access */
};

/* ---- physical memory ---- */

static void allocation_end(struct session *session, struct allocation *allocation)
{
    driver.cuMemRelease(allocation->driver);
    if (allocation->size)
        memory_refund(session, allocation->device, allocation->size);
    session->memory->allocations--;
    free(allocation);
}

static CUresult allocation_enter(struct session *session, uint64_t handle,
                                 const struct allocation *like)
{
    struct allocation *allocation = NULL;
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

    if (session->memory->allocations < SESSION_ALLOCATIONS_MAX)
        allocation = malloc(sizeof(*allocation));
    if (!allocation)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *allocation = *like;
    result = session_put(session, WIRE_ALLOCATION, handle, allocation);
    if (result != CUDA_SUCCESS) {
        free(allocation);
        return result;
    }
    session->memory->allocations++;
    return CUDA_SUCCESS;
}

static CUresult allocation_create(struct session *session, const struct device *device,
                                  const struct wire_cuMemCreate *in)
{
    struct allocation allocation = {.device = (unsigned)device->ordinal, .size = in->size};
    CUmemAllocationProp prop = device_memory_properties(device);
    CUresult result = session_enter(session, device);

    prop.requestedHandleTypes = (CUmemAllocationHandleType)in->handle_types;
    if (result == CUDA_SUCCESS)
        result = memory_create_with_room(session, device, in->size, &prop, &allocation.driver);
    if (result != CUDA_SUCCESS)
        return result;
    result = allocation_enter(session, in->handle, &allocation);
    if (result != CUDA_SUCCESS)
        driver.cuMemRelease(allocation.driver);
    return result;
}

CUresult serve_cuMemCreate(struct session *session, const struct wire_cuMemCreate *in)
{
    const struct device *device = session_find_device(session, "cuMemCreate", in->device);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!in->size || in->size % device->record.granularity ||
        in->handle_types & ~(uint32_t)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    if (!memory_charge(session, in->device, in->size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = allocation_create(session, device, in);
    if (result != CUDA_SUCCESS)
        memory_refund(session, in->device, in->size);
    return result;
}

CUresult serve_cuMemRelease(struct session *session, const struct wire_cuMemRelease *in,
                            struct allocation *handle)
{
    session_remove(session, WIRE_ALLOCATION, in->handle);
    handle->released = true;
    if (!handle->mappings)
        allocation_end(session, handle);
    return CUDA_SUCCESS;
}

/* A client with one descriptor can duplicate it, so each allocation is charged once. */
static bool may_export(struct session *session, struct allocation *allocation)
{
    if (!allocation->exported)
        allocation->exported = memory_may_export(session, allocation->device, allocation->size);
    return allocation->exported;
}

CUresult serve_cuMemExportToShareableHandle(struct session *session,
                                            const struct wire_cuMemExportToShareableHandle *in,
                                            struct allocation *handle)
{
    struct socket_message message = {.kind = SOCKET_ALLOCATION, .value = in->handle};
    _cleanup_fd_ int fd = -1;

    if (!may_export(session, handle)) {
        session_log_error(session,
                          "cuMemExportToShareableHandle: it has a memory limit, and has had "
                          "descriptors of as much memory as the quota kept-memory says");
        return CUDA_ERROR_NOT_PERMITTED;
    }
    CUresult result = driver.cuMemExportToShareableHandle(
        &fd, handle->driver, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);

    if (result != CUDA_SUCCESS)
        return result;
    return sock_send(session->socket, &message, sizeof(message), &fd, 1)
               ? CUDA_ERROR_MPS_RPC_FAILURE
               : CUDA_SUCCESS;
}

/* Drivers export memory as a character device or as a sealed memory file. No other descriptor of a
 * client is passed to them. */
bool vmm_could_be_memory(int fd)
{
    struct stat status;

    if (fstat(fd, &status))
        return false;
    return S_ISCHR(status.st_mode) || !shm_check(fd, 1);
}

static CUresult import_allocation(struct session *session, int fd,
                                  struct allocation *ret_allocation)
{
    CUmemAllocationProp prop = {0};
    CUresult result = session_enter(session, session_device(session, 0));

    if (result == CUDA_SUCCESS)
        result =
            driver.cuMemImportFromShareableHandle(&ret_allocation->driver, (void *)(uintptr_t)fd,
                                                  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    if (result != CUDA_SUCCESS)
        return result;
    result = driver.cuMemGetAllocationPropertiesFromHandle(&prop, ret_allocation->driver);
    if (result == CUDA_SUCCESS && (prop.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
                                   (unsigned)prop.location.id >= session->server->devices.count))
        result = CUDA_ERROR_NOT_SUPPORTED;
    if (result != CUDA_SUCCESS)
        driver.cuMemRelease(ret_allocation->driver);
    ret_allocation->device = (unsigned)prop.location.id;
    return result;
}

static CUresult adopt_allocation(struct session *session, const struct wire_fnAllocationAdopt *in,
                                 int fd)
{
    struct allocation allocation = {.size = in->size, .exported = true};
    CUresult result = import_allocation(session, fd, &allocation);

    if (result != CUDA_SUCCESS)
        return result;
    result = allocation.device == in->device ? allocation_enter(session, in->handle, &allocation)
                                             : CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        driver.cuMemRelease(allocation.driver);
    return result;
}

static bool could_be_size(const struct device *device, uint64_t size)
{
    return size && size % device->record.granularity == 0 && size <= device->record.total_memory;
}

/* No driver reports the size of imported memory, so the mapped size is charged. */
CUresult serve_fnAllocationAdopt(struct session *session, const struct wire_fnAllocationAdopt *in)
{
    const struct device *device = session_find_device(session, "fnAllocationAdopt", in->device);
    _cleanup_fd_ int fd = -1;
    CUresult result = blob_take_fd(session, in->blob, &fd);

    if (result != CUDA_SUCCESS)
        return result;
    if (!device || !could_be_size(device, in->size) || !vmm_could_be_memory(fd))
        return CUDA_ERROR_INVALID_VALUE;
    if (!memory_charge(session, in->device, in->size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = adopt_allocation(session, in, fd);
    if (result != CUDA_SUCCESS)
        memory_refund(session, in->device, in->size);
    else
        session->memory->device[in->device].given += in->size;
    return result;
}

CUresult serve_cuMemImportFromShareableHandle(struct session *session,
                                              const struct wire_cuMemImportFromShareableHandle *in,
                                              struct wire_cuMemImportFromShareableHandle_reply *ret)
{
    struct allocation allocation = {0};
    _cleanup_fd_ int fd = -1;
    CUresult result = blob_take_fd(session, in->blob, &fd);

    if (result != CUDA_SUCCESS)
        return result;
    if (!vmm_could_be_memory(fd)) {
        session_log_error(session, "cuMemImportFromShareableHandle: the descriptor is not memory");
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = import_allocation(session, fd, &allocation);
    if (result != CUDA_SUCCESS)
        return result;
    result = allocation_enter(session, in->handle, &allocation);
    if (result != CUDA_SUCCESS)
        driver.cuMemRelease(allocation.driver);
    ret->device = allocation.device;
    return result;
}

/* ---- mappings ---- */

static bool charge_mapping(struct session *session, const struct mapping *mapping)
{
    return mapping->allocation->size ||
           memory_charge(session, mapping->allocation->device, mapping->size);
}

static void refund_mapping(struct session *session, const struct mapping *mapping)
{
    if (!mapping->allocation->size)
        memory_refund(session, mapping->allocation->device, mapping->size);
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
        driver.cuMemMap(mapping->address, mapping->size, 0, mapping->allocation->driver, 0);
    if (result != CUDA_SUCCESS) {
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
    if (handle->size && in->size > handle->size)
        return CUDA_ERROR_INVALID_VALUE;
    if (!charge_mapping(session, &mapping))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = map_allocation(session, &mapping);
    if (result != CUDA_SUCCESS)
        refund_mapping(session, &mapping);
    else
        handle->mappings++;
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
    struct allocation *allocation = mapping->allocation;

    if (mapping->readers)
        memory_forbid(session, mapping->address);
    ranges_remove(&session->memory->mappings, mapping->address, NULL);
    driver.cuMemUnmap(mapping->address, mapping->size);
    refund_mapping(session, mapping);
    free(mapping);
    if (--allocation->mappings == 0 && allocation->released)
        allocation_end(session, allocation);
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
        at += mapping->size;
        unmap(session, mapping);
    }
    return CUDA_SUCCESS;
}

/* Copies are possible while at least one device has access. */
static CUresult set_reader(struct session *session, struct mapping *mapping, unsigned device,
                           bool may)
{
    uint64_t readers = mapping->readers & ~(1ull << device);
    const struct granule extent = {.kind = GRANULE_MAPPED,
                                   .part = mapping->allocation->device,
                                   .address = mapping->address,
                                   .size = mapping->size,
                                   .fd = -1};
    CUresult result = CUDA_SUCCESS;

    if (may)
        readers |= 1ull << device;
    if (readers && !mapping->readers)
        result = memory_allow(session, &extent);
    if (!readers && mapping->readers)
        memory_forbid(session, mapping->address);
    if (result == CUDA_SUCCESS)
        mapping->readers = readers;
    return result;
}

CUresult serve_cuMemSetAccess(struct session *session, const struct wire_cuMemSetAccess *in)
{
    const struct device *device = session_find_device(session, "cuMemSetAccess", in->device);
    CUmemAccessDesc access = {.flags = (CUmemAccess_flags)in->flags};

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!is_whole(session, in->ptr, in->size))
        return CUDA_ERROR_INVALID_VALUE;
    access.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, device->ordinal};
    CUresult result = driver.cuMemSetAccess(in->ptr, in->size, &access, 1);
    for (uint64_t at = in->ptr; result == CUDA_SUCCESS && at < in->ptr + in->size;) {
        struct mapping *mapping = ranges_find(&session->memory->mappings, at)->value;
        at += mapping->size;
        result =
            set_reader(session, mapping, in->device, in->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE);
    }
    return result;
}

static struct mapping *mapping_at(const struct session *session, unsigned device, uint64_t address)
{
    const struct range *range = ranges_find(&session->memory->mappings, address);
    struct mapping *mapping = range ? range->value : NULL;

    return mapping && mapping->allocation->device == device ? mapping : NULL;
}

struct reach {
    unsigned device;
    bool is_whole;
};

static void check_allocation(void *context, uint64_t handle, void *object)
{
    struct reach *reach = context;
    const struct allocation *allocation = object;

    if (handle_type(handle) == WIRE_ALLOCATION && allocation->device == reach->device)
        reach->is_whole &= allocation->mappings > 0;
}

bool vmm_is_reached(struct session *session, unsigned device)
{
    const struct ranges *mappings = &session->memory->mappings;
    struct reach reach = {device, true};

    handles_for_each(&session->objects, check_allocation, &reach);
    for (size_t i = 0; i < mappings->count; i++) {
        const struct mapping *mapping = mappings->sorted[i].value;

        if (mapping->allocation->device == device)
            reach.is_whole &= mapping->readers >> device & 1;
    }
    return reach.is_whole;
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
        if (!may_export(session, mapping->allocation))
            return CUDA_ERROR_NOT_PERMITTED;
    }
    return CUDA_SUCCESS;
}

/* ---- the end of a session ---- */

static void release_unmapped(void *context, uint64_t handle, void *object)
{
    struct session *session = context;

    if (handle_type(handle) != WIRE_ALLOCATION)
        return;
    session_remove(session, WIRE_ALLOCATION, handle);
    allocation_end(session, object);
}

void vmm_release_all(struct session *session)
{
    const struct range *range;

    while ((range = ranges_next(&session->memory->mappings, 0)))
        unmap(session, range->value);
    handles_for_each(&session->objects, release_unmapped, session);
    ranges_fini(&session->memory->mappings);
    reservations_end(session);
}
