/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device granule is physical memory mapped at a free address of the client's window. The client
 * keeps a file descriptor of it. It is charged against the client's limit. For a while host memory
 * may replace it; kernels can access that, too.
 */
#include "device_granule.h"

#include <unistd.h>

#include "allocation_place.h"
#include "attach.h"
#include "cleanup.h"
#include "descriptor_limit.h"
#include "fd.h"
#include "host_memory.h"
#include "host_node.h"
#include "ipc_memory.h"
#include "ipc_share.h"
#include "memory_state.h"
#include "sock.h"
#include "swap.h"
#include "swap_kept.h"
#include "swap_precopy.h"

static CUmemAllocationProp properties_of(const struct device *device, const struct granule *granule)
{
    CUmemAllocationProp prop = device_memory_properties(device);

    if (granule->on_host) {
        prop.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_HOST_NUMA, host_node(device)};
        prop.allocFlags.gpuDirectRDMACapable = 0;
    }
    return prop;
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

bool device_granule_may_export(struct session *session, struct granule *granule)
{
    if (!granule->exported)
        granule->exported = memory_may_export(session, granule->part, granule->size);
    return granule->exported;
}

/* A program may have thousands of allocations, and the server needs descriptors for its clients. */
static bool may_keep(const struct granule *granule)
{
    return granule->kind == GRANULE_DEVICE ||
           (uint64_t)granule->kept.outbox < descriptor_limit() / 2;
}

/* Where descriptors run out the memory ends with this server. */
static void fill_inbox(struct granule *granule, int fd)
{
    if ((granule->kept.inbox < 0 && revocable_init(&granule->kept)) || !may_keep(granule) ||
        revocable_fill(&granule->kept, fd))
        revocable_fini(&granule->kept);
}

static CUresult export_memory(const struct granule *granule, int *ret_fd)
{
    return driver.cuMemExportToShareableHandle(ret_fd, granule->handle,
                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
}

static CUresult export_to_inbox(struct granule *granule)
{
    _cleanup_fd_ int fd = -1;
    CUresult result = export_memory(granule, &fd);

    if (result == CUDA_SUCCESS)
        fill_inbox(granule, fd);
    return result;
}

static CUresult send_inbox(const struct session *session, const struct granule *granule)
{
    struct socket_message message = {.kind = SOCKET_GRANULE, .value = device_granule_key(granule)};

    return sock_send(session->socket, &message, sizeof(message), &granule->kept.inbox,
                     granule->kept.inbox >= 0)
               ? CUDA_ERROR_MPS_RPC_FAILURE
               : CUDA_SUCCESS;
}

/* The client has its memory even if the driver has no descriptor of it. */
CUresult device_granule_send(struct session *session, struct granule *granule)
{
    if (device_granule_may_export(session, granule))
        session_check(session, export_to_inbox(granule));
    return send_inbox(session, granule);
}

/* The driver exports no memory that it has imported. */
CUresult device_granule_lend(struct session *session, struct granule *granule, int fd)
{
    fill_inbox(granule, fd);
    return send_inbox(session, granule);
}

/* Device memory is charged as device memory, host memory as page-locked memory. */
static bool charge_granule(struct session *session, const struct granule *granule)
{
    return granule->on_host ? host_memory_charge(session, granule->size)
                            : memory_charge(session, granule->part, granule->size);
}

static void refund(struct session *session, const struct granule *granule)
{
    if (granule->on_host)
        host_memory_refund(session, granule->size);
    else
        memory_refund(session, granule->part, granule->size);
}

static void unmap_memory(struct session *session, struct granule *granule)
{
    if (granule->kind == GRANULE_CREATED)
        allocation_unmap_all(session, allocation_of(granule));
    else
        driver.cuMemUnmap(granule->address, granule->size);
}

static void release_memory(struct session *session, struct granule *granule)
{
    swap_precopy_forget(session, granule);
    unmap_memory(session, granule);
    driver.cuMemRelease(granule->handle);
    refund(session, granule);
}

static void end_granule(struct session *session, struct granule *granule)
{
    if (granule->swapped)
        swap_forget(session, granule);
    else
        release_memory(session, granule);
    swap_keep_end(session, granule);
    revocable_fini(&granule->kept);
    window_unplace(session->window, granule->address);
}

/* Creating host memory takes longer than the copy into it. So when a granule returns to the device,
 * its host memory is kept for the next exchange. It stays charged. */
static void end_memory(struct session *session, const struct granule *granule)
{
    struct granule *spare = &session->memory->spare_host;

    if (granule->on_host && !spare->size) {
        *spare = *granule;
        return;
    }
    driver.cuMemRelease(granule->handle);
    refund(session, granule);
}

/* Both the spare memory and the granule have been charged. */
static bool take_spare(struct session *session, struct granule *granule)
{
    struct granule *spare = &session->memory->spare_host;

    if (!granule->on_host || spare->size != granule->size || spare->part != granule->part)
        return false;
    granule->handle = spare->handle;
    refund(session, spare);
    *spare = (struct granule){.size = 0};
    return true;
}

void device_granules_end_spare(struct session *session)
{
    struct granule *spare = &session->memory->spare_host;

    if (!spare->size)
        return;
    driver.cuMemRelease(spare->handle);
    refund(session, spare);
    *spare = (struct granule){.size = 0};
}

/* Host memory, and memory for what has been on the device before, waits for no other program. */
static CUresult make_memory(struct session *session, const struct device *device, bool is_new,
                            struct granule *granule)
{
    CUmemAllocationProp prop = properties_of(device, granule);

    if (take_spare(session, granule))
        return CUDA_SUCCESS;
    return is_new && !granule->on_host
               ? memory_create_with_room(session, device, granule->size, &prop, &granule->handle)
               : memory_create(session, device, granule->size, &prop, &granule->handle);
}

static bool is_where(const CUmemLocation *location, const struct granule *granule)
{
    return granule->on_host ? location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA
                            : location->type == CU_MEM_LOCATION_TYPE_DEVICE &&
                                  location->id == (int)granule->part;
}

/* The driver refuses to map more than the size of the memory. */
static CUresult import_memory(int fd, struct granule *granule)
{
    CUmemAllocationProp prop = {0};
    CUresult result = driver.cuMemImportFromShareableHandle(
        &granule->handle, (void *)(uintptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);

    if (result != CUDA_SUCCESS)
        return result;
    result = driver.cuMemGetAllocationPropertiesFromHandle(&prop, granule->handle);
    if (result == CUDA_SUCCESS && !is_where(&prop.location, granule))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        driver.cuMemRelease(granule->handle);
    return result;
}

CUresult device_granule_take_place(struct session *session, const struct device *device,
                                   uint64_t capacity, struct granule *granule)
{
    unsigned part = session->window->part_of[granule->part];

    if (granule->address)
        return window_place_at(session->window, part, granule->address, granule->size);
    return window_place(session->window, part, granule->size, capacity, device->record.granularity,
                        &granule->address);
}

/* The address and the charge are taken. Maps memory there: new memory, or that of `fd`. */
static CUresult fill_place(struct session *session, const struct device *device, int fd,
                           bool is_new, struct granule *granule)
{
    CUresult result = session_enter(session, device);

    if (result == CUDA_SUCCESS)
        result =
            fd < 0 ? make_memory(session, device, is_new, granule) : import_memory(fd, granule);
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

struct granule device_granule_of(const struct device *device, uint64_t size, bool on_host)
{
    return (struct granule){.kind = GRANULE_DEVICE,
                            .part = (unsigned)device->ordinal,
                            .size = size,
                            .on_host = on_host,
                            .kept = REVOCABLE_NONE,
                            .fd = -1};
}

/* Maps the granule at its address, or, if that is 0, at one with `capacity` free bytes. The memory
 * is that of `fd`, or made if that is -1; `is_new`: the client asks for it. */
static CUresult place_granule(struct session *session, const struct device *device, int fd,
                              uint64_t capacity, bool is_new, struct granule *granule)
{
    if (!charge_granule(session, granule))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = device_granule_take_place(session, device, capacity, granule);
    if (result == CUDA_SUCCESS) {
        result = fill_place(session, device, fd, is_new, granule);
        if (result != CUDA_SUCCESS)
            window_unplace(session->window, granule->address);
    }
    if (result != CUDA_SUCCESS)
        refund(session, granule);
    return result;
}

CUresult device_granule_create(struct session *session, const struct device *device, int fd,
                               uint64_t capacity, struct granule *granule)
{
    CUresult result = place_granule(session, device, fd, capacity, true, granule);

    if (result != CUDA_SUCCESS)
        return result;
    result = memory_allow(session, granule);
    if (result != CUDA_SUCCESS)
        end_granule(session, granule);
    return result;
}

/* The memory lives on for clients that have opened it. */
static void granule_unshare(struct session *session, const struct granule *granule)
{
    if (!granule->share)
        return;
    ipc_withdraw(session, granule->share);
    ipc_share_unref(session->server, granule->share);
}

void device_granule_revoke(const struct granule *granule)
{
    revocable_revoke(&granule->kept);
}

void device_granule_end(struct session *session, struct granule *granule)
{
    granule_unshare(session, granule);
    end_granule(session, granule);
}

struct granule *device_granule_find(const struct session *session, uint64_t address)
{
    struct granule *granule = memory_granule_at(session, address);

    return granule && granule->kind == GRANULE_DEVICE && granule->address == address ? granule
                                                                                     : NULL;
}

/* ---- other memory in the same place ---- */

/* Maps the old memory again when the new one cannot be mapped there. */
static CUresult change_places(struct session *session, struct granule *granule,
                              const struct granule *other)
{
    struct granule new = *granule;

    new.handle = other->handle;
    session->memory->exchanges++;
    swap_precopy_forget(session, granule);
    driver.cuMemUnmap(granule->address, granule->size);
    CUresult result = map_granule(session, &new);
    if (result == CUDA_SUCCESS) {
        revocable_fini(&granule->kept);
        end_memory(session, granule);
        granule->handle = other->handle;
        granule->on_host = other->on_host;
        granule->exported = false;
    } else if (map_granule(session, granule) != CUDA_SUCCESS) {
        session_log_error(session, "memory at %#llx cannot be mapped any more",
                          (unsigned long long)granule->address);
    }
    return result;
}

CUresult device_granule_exchange(struct session *session, struct granule *granule, bool on_host,
                                 device_granule_copier *copy)
{
    const struct device *device = session_device(session, granule->part);
    struct granule other = device_granule_of(device, granule->size, on_host);
    CUresult result = place_granule(session, device, -1, granule->size, false, &other);

    if (result != CUDA_SUCCESS)
        return result;
    result = copy(other.address, granule->address, granule->size);
    driver.cuMemUnmap(other.address, other.size);
    window_unplace(session->window, other.address);
    if (result == CUDA_SUCCESS)
        result = change_places(session, granule, &other);
    if (result != CUDA_SUCCESS) {
        driver.cuMemRelease(other.handle);
        refund(session, &other);
    }
    return result;
}

/* ---- without memory for a while ---- */

void device_granule_withdraw(struct session *session, struct granule *granule)
{
    device_granule_revoke(granule);
    device_granule_unrestore(session, granule);
}

void device_granule_unrestore(struct session *session, struct granule *granule)
{
    session->memory->exchanges++;
    release_memory(session, granule);
    granule->handle = 0;
    granule->exported = false;
    granule->is_away = true;
}

void device_granule_withdraw_saved(struct session *session, struct granule *granule, int file)
{
    const struct revocable *kept = &granule->kept;
    bool has_place = kept->inbox >= 0, is_lent = has_place && revocable_is_filled(kept->inbox);

    if (is_lent)
        revocable_fill(kept, file);
    device_granule_withdraw(session, granule);
    if (has_place && !is_lent)
        revocable_fill(kept, file);
}

static CUresult map_memory(struct session *session, struct granule *granule)
{
    return granule->kind == GRANULE_CREATED ? allocation_map_all(session, allocation_of(granule))
                                            : map_granule(session, granule);
}

CUresult device_granule_restore(struct session *session, struct granule *granule)
{
    const struct device *device = session_device(session, granule->part);
    CUresult result = make_memory(session, device, false, granule);

    if (result != CUDA_SUCCESS)
        return result;
    result = map_memory(session, granule);
    if (result != CUDA_SUCCESS) {
        driver.cuMemRelease(granule->handle);
        return result;
    }
    memory_charge_again(session, granule->part, granule->size);
    granule->is_away = false;
    return CUDA_SUCCESS;
}

/* Behind what the inbox has. Where descriptors run out the memory ends with this server. */
static void lend_memory(struct session *session, struct granule *granule)
{
    _cleanup_fd_ int fd = -1;

    if (device_granule_may_export(session, granule) && export_memory(granule, &fd) == CUDA_SUCCESS)
        revocable_fill(&granule->kept, fd);
}

/* The file's entry is the first, so it is the one that is taken out. */
void device_granule_keep_again(struct session *session, struct granule *granule)
{
    if (granule->kept.inbox < 0)
        return;
    bool has_file = revocable_is_filled(granule->kept.inbox);
    lend_memory(session, granule);
    if (has_file)
        device_granule_revoke(granule);
}
