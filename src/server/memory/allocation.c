/* SPDX-License-Identifier: Apache-2.0 */
/* See allocation.h. A client is lent a descriptor of what it creates, as of a granule
 * (device_granule.h), so that the memory can outlive this server. */
#include "allocation.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "attach.h"
#include "blob.h"
#include "device_granule.h"
#include "fd.h"
#include "memory_state.h"
#include "server_dispatch.h"
#include "shm.h"
#include "sock.h"
#include "swap.h"
#include "swap_file.h"
#include "swap_kept.h"

/* ---- tables ---- */

static void release_memory(struct session *session, struct allocation *allocation)
{
    struct granule *memory = &allocation->memory;

    swap_keep_end(session, memory);
    if (!allocation_is_there(allocation)) {
        swap_forget(session, memory);
        return;
    }
    driver.cuMemRelease(memory->handle);
    if (memory->size)
        memory_refund(session, memory->part, memory->size);
}

void allocation_end(struct session *session, struct allocation *allocation)
{
    release_memory(session, allocation);
    revocable_fini(&allocation->memory.kept);
    list_remove(&allocation->link);
    session->memory->allocations--;
    free(allocation);
}

void allocation_settle(struct session *session, struct allocation *allocation)
{
    if (!allocation->released || !list_empty(&allocation->mappings))
        return;
    device_granule_revoke(&allocation->memory);
    allocation_end(session, allocation);
}

static struct granule memory_of(uint64_t number, unsigned device, uint64_t size)
{
    return (struct granule){.kind = GRANULE_CREATED,
                            .part = device,
                            .number = number,
                            .size = size,
                            .kept = REVOCABLE_NONE,
                            .fd = -1};
}

static CUresult enter_allocation(struct session *session, const struct allocation *like,
                                 struct allocation **ret_allocation)
{
    struct allocation *allocation = NULL;

    if (session->memory->allocations < SESSION_ALLOCATIONS_MAX)
        allocation = malloc(sizeof(*allocation));
    if (!allocation)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *allocation = *like;
    list_init(&allocation->mappings);
    CUresult result = session_put(session, WIRE_ALLOCATION, like->memory.number, allocation);
    if (result != CUDA_SUCCESS) {
        free(allocation);
        return result;
    }
    list_append(&session->memory->created, &allocation->link);
    session->memory->allocations++;
    *ret_allocation = allocation;
    return CUDA_SUCCESS;
}

/* ---- creation and release ---- */

static CUresult create_allocation(struct session *session, const struct device *device,
                                  const struct wire_cuMemCreate *in,
                                  struct allocation **ret_allocation)
{
    struct allocation like = {.memory = memory_of(in->handle, (unsigned)device->ordinal, in->size)};
    const CUmemAllocationProp prop = device_memory_properties(device);
    CUresult result = session_enter(session, device);

    if (result == CUDA_SUCCESS)
        result = memory_create_with_room(session, device, in->size, &prop, &like.memory.handle);
    if (result != CUDA_SUCCESS)
        return result;
    result = enter_allocation(session, &like, ret_allocation);
    if (result != CUDA_SUCCESS)
        driver.cuMemRelease(like.memory.handle);
    return result;
}

static CUresult check_request(struct session *session, const struct wire_cuMemCreate *in,
                              const struct device **ret_device)
{
    *ret_device = session_find_device(session, "cuMemCreate", in->device);
    if (!*ret_device)
        return CUDA_ERROR_INVALID_DEVICE;
    return in->size && in->size % (*ret_device)->record.granularity == 0 ? CUDA_SUCCESS
                                                                         : CUDA_ERROR_INVALID_VALUE;
}

CUresult serve_cuMemCreate(struct session *session, const struct wire_cuMemCreate *in)
{
    const struct device *device;
    struct allocation *allocation;
    CUresult result = check_request(session, in, &device);

    if (result != CUDA_SUCCESS)
        return result;
    if (!memory_charge(session, in->device, in->size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = create_allocation(session, device, in, &allocation);
    if (result != CUDA_SUCCESS) {
        memory_refund(session, in->device, in->size);
        return result;
    }
    return device_granule_send(session, &allocation->memory);
}

CUresult serve_cuMemRelease(struct session *session, const struct wire_cuMemRelease *in,
                            struct allocation *handle)
{
    session_remove(session, WIRE_ALLOCATION, in->handle);
    handle->released = true;
    allocation_settle(session, handle);
    return CUDA_SUCCESS;
}

/* ---- descriptors ---- */

bool allocation_may_export(struct session *session, struct allocation *allocation)
{
    return device_granule_may_export(session, &allocation->memory);
}

CUresult serve_cuMemExportToShareableHandle(struct session *session,
                                            const struct wire_cuMemExportToShareableHandle *in,
                                            struct allocation *handle)
{
    struct socket_message message = {.kind = SOCKET_ALLOCATION, .value = in->handle};
    _cleanup_fd_ int fd = -1;

    if (!allocation_may_export(session, handle)) {
        session_log_error(session,
                          "cuMemExportToShareableHandle: it has a memory limit, and has had "
                          "descriptors of as much memory as the quota kept-memory says");
        return CUDA_ERROR_NOT_PERMITTED;
    }
    CUresult result = driver.cuMemExportToShareableHandle(
        &fd, handle->memory.handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);

    if (result != CUDA_SUCCESS)
        return result;
    handle->shared = true;
    return sock_send(session->socket, &message, sizeof(message), &fd, 1)
               ? CUDA_ERROR_MPS_RPC_FAILURE
               : CUDA_SUCCESS;
}

/* Drivers export memory as a character device or as a sealed memory file. No other descriptor of a
 * client is passed to them. */
bool allocation_could_be_memory(int fd)
{
    struct stat status;

    if (fstat(fd, &status))
        return false;
    return S_ISCHR(status.st_mode) || !shm_check(fd, 1);
}

static CUresult import_memory(struct session *session, int fd, struct granule *ret_memory)
{
    CUmemAllocationProp prop = {0};
    CUresult result = session_visit(session, session_device(session, 0));

    if (result == CUDA_SUCCESS)
        result = driver.cuMemImportFromShareableHandle(&ret_memory->handle, (void *)(uintptr_t)fd,
                                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    if (result != CUDA_SUCCESS)
        return result;
    result = driver.cuMemGetAllocationPropertiesFromHandle(&prop, ret_memory->handle);
    if (result == CUDA_SUCCESS && (prop.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
                                   (unsigned)prop.location.id >= session->server->devices.count))
        result = CUDA_ERROR_NOT_SUPPORTED;
    if (result == CUDA_SUCCESS)
        result = session_enter(session, session_device(session, (unsigned)prop.location.id));
    if (result != CUDA_SUCCESS)
        driver.cuMemRelease(ret_memory->handle);
    ret_memory->part = (unsigned)prop.location.id;
    return result;
}

CUresult serve_cuMemImportFromShareableHandle(struct session *session,
                                              const struct wire_cuMemImportFromShareableHandle *in,
                                              struct wire_cuMemImportFromShareableHandle_reply *ret)
{
    struct allocation like = {.memory = memory_of(in->handle, 0, 0), .shared = true}, *allocation;
    _cleanup_fd_ int fd = -1;
    CUresult result = blob_take_fd(session, in->blob, &fd);

    if (result != CUDA_SUCCESS)
        return result;
    if (!allocation_could_be_memory(fd)) {
        session_log_error(session, "cuMemImportFromShareableHandle: the descriptor is not memory");
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = import_memory(session, fd, &like.memory);
    if (result != CUDA_SUCCESS)
        return result;
    result = enter_allocation(session, &like, &allocation);
    if (result != CUDA_SUCCESS)
        driver.cuMemRelease(like.memory.handle);
    ret->device = like.memory.part;
    return result;
}

/* ---- what an earlier server has made ---- */

static bool could_be_size(const struct device *device, uint64_t size)
{
    return size && size % device->record.granularity == 0 && size <= device->record.total_memory;
}

/* Like a new one, but for the memory. */
static CUresult adopt_memory(struct session *session, const struct wire_fnAllocationAdopt *in,
                             int fd, struct allocation **ret_allocation)
{
    struct allocation like = {.memory = memory_of(in->handle, in->device, in->size),
                              .shared = in->shared != 0};
    CUresult result = import_memory(session, fd, &like.memory);

    if (result != CUDA_SUCCESS)
        return result;
    like.memory.exported = true;
    result = like.memory.part == in->device ? enter_allocation(session, &like, ret_allocation)
                                            : CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        driver.cuMemRelease(like.memory.handle);
    return result;
}

/* No driver reports the size of imported memory, so the size that the client names is charged. */
static CUresult adopt_and_charge(struct session *session, const struct wire_fnAllocationAdopt *in,
                                 int fd, struct allocation **ret_allocation)
{
    if (!memory_charge(session, in->device, in->size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = adopt_memory(session, in, fd, ret_allocation);
    if (result != CUDA_SUCCESS)
        memory_refund(session, in->device, in->size);
    else
        session->memory->device[in->device].given += in->size;
    return result;
}

/* The client was suspended, and stays so until it is resumed: program_suspend.h. */
static CUresult adopt_saved(struct session *session, const struct wire_fnAllocationAdopt *in,
                            int fd, struct allocation **ret_allocation)
{
    const struct allocation like = {.memory = memory_of(in->handle, in->device, in->size)};
    struct granule *memory;
    CUresult result = enter_allocation(session, &like, ret_allocation);

    if (result != CUDA_SUCCESS)
        return result;
    memory = &(*ret_allocation)->memory;
    result = swap_adopt(session, memory, fd);
    if (result == CUDA_SUCCESS)
        return result;
    session_remove(session, WIRE_ALLOCATION, in->handle);
    list_remove(&(*ret_allocation)->link);
    session->memory->allocations--;
    free(*ret_allocation);
    return result;
}

CUresult serve_fnAllocationAdopt(struct session *session, const struct wire_fnAllocationAdopt *in)
{
    const struct device *device = session_find_device(session, "fnAllocationAdopt", in->device);
    struct allocation *allocation;
    _cleanup_fd_ int fd = -1;
    CUresult result = blob_take_fd(session, in->blob, &fd);

    if (result != CUDA_SUCCESS)
        return result;
    if (!device || !could_be_size(device, in->size))
        return CUDA_ERROR_INVALID_VALUE;
    if (allocation_could_be_memory(fd))
        result = adopt_and_charge(session, in, fd, &allocation);
    else
        result = swap_file_check(fd) ? CUDA_ERROR_INVALID_VALUE
                                     : adopt_saved(session, in, fd, &allocation);
    return result == CUDA_SUCCESS ? device_granule_lend(session, &allocation->memory, fd) : result;
}
