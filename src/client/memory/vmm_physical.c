/* SPDX-License-Identifier: Apache-2.0 */
/* See vmm_physical.h. */
#include "vmm_physical.h"

#include <fcntl.h>
#include <stdlib.h>

#include "client_call.h"
#include "client_prototypes.h"
#include "client_socket.h"
#include "descriptor_limit.h"
#include "fd.h"
#include "wire_calls.h"

static CUresult check_prop(const CUmemAllocationProp *prop, struct device **ret_device)
{
    if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        prop->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    *ret_device = device_lookup(prop->location.id);
    return *ret_device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

static struct physical *physical_create(void)
{
    struct physical *physical = calloc(1, sizeof(*physical));

    if (!physical)
        return NULL;
    physical->references = 1;
    physical->fd = -1;
    physical->handle = handles_add(&client->handles, WIRE_ALLOCATION, physical);
    if (physical->handle)
        return physical;
    free(physical);
    return NULL;
}

static void physical_forget(struct physical *physical)
{
    handles_remove(&client->handles, WIRE_ALLOCATION, physical->handle);
    fd_close(&physical->fd);
    free(physical);
}

static void close_descriptor(void *context, uint64_t handle, void *object)
{
    if (handle_type(handle) == WIRE_ALLOCATION)
        fd_close(&((struct physical *)object)->fd);
}

void vmm_physical_after_fork_in_child(void)
{
    handles_for_each(&client->handles, close_descriptor, NULL);
}

/* Memory that is neither held nor mapped any more is released by the server. */
void vmm_physical_settle_locked(struct physical *physical)
{
    struct wire_cuMemRelease in = {.handle = physical->handle};

    if (physical->references || physical->mappings)
        return;
    channel_lock(&client->channel);
    wire_cuMemRelease(&client->channel, &in);
    channel_unlock(&client->channel);
    physical_forget(physical);
}

struct physical *vmm_physical_lookup_locked(CUmemGenericAllocationHandle handle)
{
    struct physical *physical = handles_get(&client->handles, WIRE_ALLOCATION, handle);

    return physical && physical->references ? physical : NULL;
}

/* A program may have thousands of allocations, and needs descriptors of its own. Memory whose
 * descriptor is not kept is lost with its server. */
static void keep_descriptor(struct physical *physical, int fd)
{
    if (fd >= 0 && (uint64_t)fd >= descriptor_limit() / 2)
        fd_close(&fd);
    physical->fd = fd;
}

static CUresult receive_exported(uint64_t handle, int *ret_fd)
{
    struct wire_cuMemExportToShareableHandle in = {.handle = handle};
    CUresult result = wire_cuMemExportToShareableHandle(&client->channel, &in);

    return result == CUDA_SUCCESS ? client_receive_descriptor(SOCKET_ALLOCATION, handle, ret_fd)
                                  : result;
}

/* The memory of a client with a memory limit may come without an inbox. */
static CUresult make_locked(struct physical *physical)
{
    const struct wire_cuMemCreate in = {
        .handle = physical->handle,
        .device = physical->device->index,
        .size = physical->size,
    };
    CUresult result = wire_cuMemCreate(&client->channel, &in);
    int fd = -1;

    if (result == CUDA_SUCCESS)
        result = client_receive_granule(physical->handle, &fd);
    if (result == CUDA_SUCCESS) {
        keep_descriptor(physical, fd);
        physical->is_made = true;
    }
    return result;
}

CUresult client_cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                            const CUmemAllocationProp *prop, unsigned long long flags)
{
    struct physical *physical;
    struct device *device;
    CUresult result = check_prop(prop, &device);

    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    if (size == 0 || size % memory_device_heap(device)->granularity)
        return CUDA_ERROR_INVALID_VALUE;
    _cleanup_mutex_ pthread_mutex_t *lock = call_mutex_hold(&client->socket_lock);
    VMM_LOCKED;
    physical = physical_create();
    if (!physical)
        return CUDA_ERROR_OUT_OF_MEMORY;
    physical->device = device;
    physical->size = size;
    physical->prop = *prop;
    result = make_locked(physical);
    if (result != CUDA_SUCCESS)
        physical_forget(physical);
    else
        *handle = physical->handle;
    return result;
}

CUresult client_cuMemRelease(CUmemGenericAllocationHandle handle)
{
    struct physical *physical;
    VMM_LOCKED;

    physical = vmm_physical_lookup_locked(handle);
    if (!physical)
        return CUDA_ERROR_INVALID_VALUE;
    physical->references--;
    vmm_physical_settle_locked(physical);
    return client_error();
}

CUresult client_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
    struct mapping *mapping;
    VMM_LOCKED;

    mapping = vmm_mapping_at_locked((uintptr_t)addr);
    if (!mapping)
        return CUDA_ERROR_INVALID_VALUE;
    mapping->physical->references++;
    *handle = mapping->physical->handle;
    return CUDA_SUCCESS;
}

CUresult client_cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                                       CUmemGenericAllocationHandle handle)
{
    struct physical *physical;
    VMM_LOCKED;

    physical = vmm_physical_lookup_locked(handle);
    if (!physical)
        return CUDA_ERROR_INVALID_VALUE;
    *prop = physical->prop;
    return CUDA_SUCCESS;
}

/* None of it can be made here. Programs ask for its granularity before they try: NCCL does, and
 * then does without. */
static bool is_of_host(const CUmemAllocationProp *prop)
{
    return prop->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
           (prop->location.type == CU_MEM_LOCATION_TYPE_HOST ||
            prop->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
            prop->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT);
}

CUresult client_cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                              CUmemAllocationGranularity_flags option)
{
    struct device *device = &client->devices[0];
    CUresult result = is_of_host(prop) ? CUDA_SUCCESS : check_prop(prop, &device);

    if ((unsigned)option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *granularity = memory_device_heap(device)->granularity;
    return result;
}

/* ---- as descriptors ---- */

CUresult client_cuMemExportToShareableHandle(void *shareableHandle,
                                             CUmemGenericAllocationHandle handle,
                                             CUmemAllocationHandleType handleType,
                                             unsigned long long flags)
{
    _cleanup_mutex_ pthread_mutex_t *lock = call_mutex_hold(&client->socket_lock);
    struct physical *physical;
    CUresult result;
    VMM_LOCKED;

    physical = vmm_physical_lookup_locked(handle);
    if (!shareableHandle || flags || !physical ||
        handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        !(physical->prop.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
        return CUDA_ERROR_INVALID_VALUE;
    result = receive_exported(handle, shareableHandle);
    physical->shared |= result == CUDA_SUCCESS;
    return result;
}

static CUresult import_physical(struct physical *physical, int fd)
{
    struct wire_cuMemImportFromShareableHandle in = {.handle = physical->handle};
    struct wire_cuMemImportFromShareableHandle_reply out;
    CUresult result;

    if (client_send_descriptor(fd, 0, &in.blob) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    result = wire_cuMemImportFromShareableHandle(&client->channel, &in, &out);
    if (result != CUDA_SUCCESS)
        return result;
    physical->is_made = true;
    physical->device = device_with_index(out.device);
    keep_descriptor(physical, fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (physical->device)
        physical->prop = (CUmemAllocationProp){
            .type = CU_MEM_ALLOCATION_TYPE_PINNED,
            .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
            .location = {CU_MEM_LOCATION_TYPE_DEVICE, physical->device->ordinal},
        };
    return CUDA_SUCCESS;
}

CUresult client_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *osHandle,
                                               CUmemAllocationHandleType shHandleType)
{
    struct physical *physical;
    CUresult result = client_error();

    if (shHandleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    VMM_LOCKED;
    physical = physical_create();
    if (!physical)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = import_physical(physical, (int)(uintptr_t)osHandle);
    if (result != CUDA_SUCCESS) {
        physical_forget(physical);
        return result;
    }
    if (!physical->device) {
        physical->references = 0;
        vmm_physical_settle_locked(physical);
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *handle = physical->handle;
    return CUDA_SUCCESS;
}
