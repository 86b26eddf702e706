/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device granules, and which addresses are a client's own.
 *
 * A device granule is physical memory mapped at a free place of the client's window, and a file
 * descriptor of it for the client to keep. It is charged against the client's limit.
 */
#include "memory_state.h"

#include <stdlib.h>
#include <unistd.h>

#include "attach.h"
#include "blob.h"
#include "cleanup.h"
#include "fd.h"
#include "host_memory.h"
#include "ipc_memory.h"
#include "ipc_share.h"
#include "quota.h"
#include "server_dispatch.h"
#include "sock.h"
#include "vmm.h"

CUresult memory_allow(struct session *session, const struct granule *like)
{
    if (!quota_allows(session, QUOTA_RANGES, 1))
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct granule *granule = malloc(sizeof(*granule));
    if (!granule)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *granule = *like;
    list_init(&granule->link);
    if (ranges_add(&session->memory->extents, granule->address, granule->size, granule)) {
        free(granule);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    quota_add(session, QUOTA_RANGES, 1);
    return CUDA_SUCCESS;
}

/* The range is no longer the client's. Its description stays the caller's. */
static void forget_extent(struct session *session, uint64_t address)
{
    session->memory->generation++;
    ranges_remove(&session->memory->extents, address, NULL);
    quota_note(session, QUOTA_RANGES, session->memory->extents.count);
}

void memory_forbid(struct session *session, uint64_t address)
{
    const struct range *range = ranges_find(&session->memory->extents, address);
    struct granule *granule = range && range->start == address ? range->value : NULL;

    forget_extent(session, address);
    free(granule);
}

uint64_t memory_generation(const struct session *session)
{
    return session->memory->generation;
}

bool memory_covers(const struct session *session, uint64_t address, uint64_t size)
{
    uint64_t end;

    if (__builtin_add_overflow(address, size, &end))
        return false;
    while (address < end) {
        const struct range *range = ranges_find(&session->memory->extents, address);
        if (!range)
            return false;
        address = range->start + range->size;
    }
    return true;
}

/* Only the session's thread charges, so the limit needs no lock. */
bool memory_charge(struct session *session, unsigned device, uint64_t size)
{
    uint64_t limit = session->limits.memory[device];
    uint64_t used = session->memory->device[device].used;

    if (limit && (size > limit || used > limit - size)) {
        session->memory->refused++;
        session_log_error(session,
                          "out of memory: it has %llu MiB of device %u, wants %llu KiB more, "
                          "and its limit is %llu MiB",
                          (unsigned long long)(used >> 20), device,
                          (unsigned long long)(size >> 10), (unsigned long long)(limit >> 20));
        return false;
    }
    session->memory->device[device].used = used + size;
    if (used + size > session->memory->device[device].peak)
        session->memory->device[device].peak = used + size;
    return true;
}

void memory_refund(struct session *session, unsigned device, uint64_t size)
{
    session->memory->device[device].used -= size;
}

bool memory_may_export(struct session *session, unsigned device, uint64_t size)
{
    uint64_t limit = session->limits.memory[device], percent = quota(QUOTA_KEPT_MEMORY), most;
    uint64_t *given = &session->memory->device[device].given;

    if (__builtin_mul_overflow(limit, percent, &most))
        most = UINT64_MAX;
    most /= 100;
    if (limit && (size > most || *given > most - size))
        return false;
    *given += size;
    return true;
}

static CUmemAllocationProp device_memory(const struct device *device)
{
    return (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = {CU_MEM_LOCATION_TYPE_DEVICE, device->ordinal},
    };
}

CUresult memory_grant(const struct session *session, unsigned device, uint64_t address,
                      uint64_t size)
{
    uint64_t devices = session->memory->device[device].reached_by | 1ull << device;
    CUmemAccessDesc access[SERVER_MAX_DEVICES];
    size_t count = 0;

    for (unsigned i = 0; i < session->server->devices.count; i++) {
        if (devices >> i & 1)
            access[count++] = (CUmemAccessDesc){{CU_MEM_LOCATION_TYPE_DEVICE, (int)i},
                                                CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    }
    return driver.cuMemSetAccess(address, size, access, count);
}

static CUresult map_granule(const struct session *session, const struct granule *granule)
{
    CUresult result = driver.cuMemMap(granule->address, granule->size, 0, granule->handle, 0);

    if (result != CUDA_SUCCESS)
        return result;
    result = memory_grant(session, granule->part, granule->address, granule->size);
    if (result != CUDA_SUCCESS)
        driver.cuMemUnmap(granule->address, granule->size);
    return result;
}

/* The client gets a descriptor of the memory, so that the memory can outlive this server. One that
 * may not have it gets the message alone. */
static CUresult send_descriptor(struct session *session, const struct granule *granule)
{
    struct socket_message message = {.kind = SOCKET_GRANULE, .value = granule->address};
    bool may_export = memory_may_export(session, granule->part, granule->size);
    _cleanup_fd_ int fd = -1;
    CUresult result = CUDA_SUCCESS;

    if (may_export)
        result = driver.cuMemExportToShareableHandle(&fd, granule->handle,
                                                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    if (result != CUDA_SUCCESS)
        return result;
    return sock_send(session->socket, &message, sizeof(message), &fd, may_export)
               ? CUDA_ERROR_MPS_RPC_FAILURE
               : CUDA_SUCCESS;
}

static void unmap_granule(struct session *session, const struct granule *granule)
{
    driver.cuMemUnmap(granule->address, granule->size);
    driver.cuMemRelease(granule->handle);
    window_unplace(session->window, granule->address);
    memory_refund(session, granule->part, granule->size);
}

static bool reclaim(struct server *server)
{
    return server->memory->reclaim && server->memory->reclaim(server);
}

CUresult memory_create(struct session *session, uint64_t size, const CUmemAllocationProp *prop,
                       CUmemGenericAllocationHandle *ret_handle)
{
    CUresult result = driver.cuMemCreate(ret_handle, size, prop, 0);

    if (result == CUDA_ERROR_OUT_OF_MEMORY && reclaim(session->server))
        result = driver.cuMemCreate(ret_handle, size, prop, 0);
    return result;
}

static CUresult make_memory(struct session *session, const struct device *device,
                            struct granule *granule)
{
    CUmemAllocationProp prop = device_memory(device);

    return memory_create(session, granule->size, &prop, &granule->handle);
}

/* A size that is larger than the memory itself cannot be mapped. */
static CUresult import_memory(int fd, struct granule *granule)
{
    CUmemAllocationProp prop = {0};
    CUresult result = driver.cuMemImportFromShareableHandle(
        &granule->handle, (void *)(uintptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);

    if (result != CUDA_SUCCESS)
        return result;
    result = driver.cuMemGetAllocationPropertiesFromHandle(&prop, granule->handle);
    if (result == CUDA_SUCCESS && (prop.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
                                   prop.location.id != (int)granule->part))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        driver.cuMemRelease(granule->handle);
    return result;
}

static CUresult take_place(struct session *session, const struct device *device,
                           struct granule *granule)
{
    if (granule->address)
        return window_place_at(session->window, granule->part, granule->address, granule->size);
    return window_place(session->window, granule->part, granule->size, device->record.granularity,
                        &granule->address);
}

/* The place in the window and the charge are taken. Puts memory there, new or behind `fd`. */
static CUresult fill_place(struct session *session, const struct device *device, int fd,
                           struct granule *granule)
{
    CUresult result = session_enter(session, device);

    if (result == CUDA_SUCCESS)
        result = fd < 0 ? make_memory(session, device, granule) : import_memory(fd, granule);
    if (result != CUDA_SUCCESS) {
        session_log_error(session, "%llu MiB of device %d cannot be allocated: %s",
                          (unsigned long long)(granule->size >> 20), device->ordinal,
                          driver_error_name(result));
        return result;
    }
    result = map_granule(session, granule);
    if (result != CUDA_SUCCESS)
        driver.cuMemRelease(granule->handle);
    return result;
}

/* At `address`, or anywhere if that is 0; the memory behind `fd`, or new memory if that is -1. */
static CUresult place_granule(struct session *session, const struct device *device,
                              uint64_t address, uint64_t size, int fd, struct granule *ret_granule)
{
    struct granule granule = {.kind = GRANULE_DEVICE,
                              .part = (unsigned)device->ordinal,
                              .address = address,
                              .size = size,
                              .fd = -1};

    if (!memory_charge(session, granule.part, size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = take_place(session, device, &granule);
    if (result == CUDA_SUCCESS) {
        result = fill_place(session, device, fd, &granule);
        if (result != CUDA_SUCCESS)
            window_unplace(session->window, granule.address);
    }
    if (result != CUDA_SUCCESS) {
        memory_refund(session, granule.part, size);
        return result;
    }
    *ret_granule = granule;
    return CUDA_SUCCESS;
}

static CUresult granule_create(struct session *session, const struct device *device,
                               uint64_t address, uint64_t size, int fd, struct granule *ret_granule)
{
    CUresult result = place_granule(session, device, address, size, fd, ret_granule);

    if (result != CUDA_SUCCESS)
        return result;
    result = memory_allow(session, ret_granule);
    if (result != CUDA_SUCCESS)
        unmap_granule(session, ret_granule);
    return result;
}

static CUresult check_request(struct session *session, const char *call, uint32_t index,
                              uint64_t size, const struct device **ret_device)
{
    const struct device *device = session_find_device(session, call, index);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!size || size % device->record.granularity) {
        session_log_error(session, "%s: size %llu is not a multiple of %llu", call,
                          (unsigned long long)size, (unsigned long long)device->record.granularity);
        return CUDA_ERROR_INVALID_VALUE;
    }
    *ret_device = device;
    return CUDA_SUCCESS;
}

CUresult serve_fnGranuleCreate(struct session *session, const struct wire_fnGranuleCreate *in,
                               struct wire_fnGranuleCreate_reply *ret_out)
{
    const struct device *device;
    struct granule granule;
    CUresult result = check_request(session, "fnGranuleCreate", in->device, in->size, &device);

    if (result == CUDA_SUCCESS)
        result = granule_create(session, device, 0, in->size, -1, &granule);
    if (result != CUDA_SUCCESS)
        return result;
    ret_out->address = granule.address;
    return send_descriptor(session, &granule);
}

static CUresult adopt(struct session *session, const struct wire_fnGranuleAdopt *in, int fd)
{
    const struct device *device;
    struct granule granule;
    CUresult result = check_request(session, "fnGranuleAdopt", in->device, in->size, &device);

    if (result != CUDA_SUCCESS)
        return result;
    if (!in->address || in->address % device->record.granularity || !vmm_could_be_memory(fd)) {
        session_log_error(
            session, "fnGranuleAdopt: %#llx is not a valid place, or its descriptor is not memory",
            (unsigned long long)in->address);
        return CUDA_ERROR_INVALID_VALUE;
    }
    session->memory->device[in->device].given += in->size;
    return granule_create(session, device, in->address, in->size, fd, &granule);
}

CUresult serve_fnGranuleAdopt(struct session *session, const struct wire_fnGranuleAdopt *in)
{
    _cleanup_fd_ int fd = -1;
    CUresult result = blob_take_fd(session, in->blob, &fd);

    return result != CUDA_SUCCESS ? result : adopt(session, in, fd);
}

/* Clients that have opened it keep the memory. */
static void granule_unshare(struct session *session, const struct granule *granule)
{
    if (!granule->share)
        return;
    ipc_withdraw(session, granule->share);
    ipc_share_unref(session->server, granule->share);
}

static void release(struct session *session, struct granule *granule)
{
    if (granule->kind == GRANULE_DEVICE) {
        granule_unshare(session, granule);
        unmap_granule(session, granule);
    }
    if (granule->kind == GRANULE_HOST)
        host_memory_retire(session, granule);
    else
        free(granule);
}

CUresult serve_fnGranuleRelease(struct session *session, const struct wire_fnGranuleRelease *in)
{
    const struct range *range = ranges_find(&session->memory->extents, in->address);
    struct granule *granule = range ? range->value : NULL;

    if (!granule || granule->address != in->address ||
        (granule->kind != GRANULE_DEVICE && granule->kind != GRANULE_HOST)) {
        session_log_error(session, "fnGranuleRelease: no granule begins at %#llx",
                          (unsigned long long)in->address);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (memory_is_awaited(session, "fnGranuleRelease", granule->address, granule->size))
        return CUDA_ERROR_INVALID_VALUE;
    forget_extent(session, in->address);
    release(session, granule);
    return CUDA_SUCCESS;
}

void memory_forget_module(struct session *session, const struct module *module)
{
    uint64_t address = 0;
    const struct range *range;

    while ((range = ranges_next(&session->memory->extents, address))) {
        struct granule *granule = range->value;
        address = range->start + 1;
        if (granule->module != module)
            continue;
        forget_extent(session, granule->address);
        free(granule);
    }
}

static void release_granules(struct session *session)
{
    const struct range *range;

    while ((range = ranges_next(&session->memory->extents, 0))) {
        struct granule *granule = range->value;
        forget_extent(session, granule->address);
        release(session, granule);
    }
    ranges_fini(&session->memory->extents);
}

void memory_release_all(struct session *session)
{
    ipc_memory_close_all(session);
    release_granules(session);
}

/* What the client's limit leaves it, but not more than there is. */
CUresult serve_cuMemGetInfo_v2(struct session *session, const struct wire_cuMemGetInfo_v2 *in,
                               struct wire_cuMemGetInfo_v2_reply *ret_out)
{
    const struct device *device = session_find_device(session, "cuMemGetInfo", in->device);
    size_t free_bytes = 0, total = 0;

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    CUresult result = session_enter(session, device);
    if (result == CUDA_SUCCESS)
        result = driver.cuMemGetInfo_v2(&free_bytes, &total);
    if (result != CUDA_SUCCESS)
        return result;

    uint64_t limit = session->limits.memory[in->device];
    uint64_t used = session->memory->device[in->device].used;
    uint64_t left = limit > used ? limit - used : 0;
    ret_out->free = limit && left < free_bytes ? left : free_bytes;
    ret_out->total = total;
    return CUDA_SUCCESS;
}
