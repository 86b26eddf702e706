/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory, of the device or of the host, as sealed memfds. They are mapped where the program asks,
 * and can leave the process as file descriptors. What they leave is scratch pages: see
 * reservation_calls.c.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fd.h"
#include "soft_context.h"
#include "soft_memory.h"
#include "vmm_granularity.h"

#define HOST_NAME "funnel-soft-host-memory"
#define DEVICE_NAME "funnel-soft-memory-"
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

struct allocation {
    uint64_t handle; /* 0 when it was released and only mappings are left */
    unsigned references;
    unsigned handle_references;
    int fd;
    bool is_imported;       /* NVIDIA's driver exports no memory that it has imported */
    uint64_t size, charged; /* bytes; of the device's memory */
    struct device *device;
    CUmemAllocationProp properties;
};

unsigned memory_handle_types(const struct memory *memory)
{
    return memory->kind == MEMORY_MAPPED ? memory->allocation->properties.requestedHandleTypes : 0;
}

int memory_mapped_file(const struct memory *memory)
{
    return memory->allocation->fd;
}

static void allocation_unref_locked(struct allocation *allocation)
{
    if (!allocation || --allocation->references > 0)
        return;
    fd_close(&allocation->fd);
    device_refund_locked(allocation->device, allocation->charged);
    free(allocation);
}

static bool is_of_host(const CUmemAllocationProp *prop)
{
    return prop->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
           prop->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
}

/* Takes the descriptor over, also when it fails. */
static CUresult allocation_create_locked(int fd, uint64_t size, struct device *device,
                                         const CUmemAllocationProp *prop,
                                         struct allocation **ret_allocation)
{
    struct allocation *allocation = calloc(1, sizeof(*allocation));
    uint64_t charge = is_of_host(prop) ? 0 : size;

    if (!allocation || !device_charge_locked(device, charge)) {
        free(allocation);
        fd_close(&fd);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    allocation->fd = fd;
    allocation->size = size;
    allocation->charged = charge;
    allocation->device = device;
    allocation->properties = *prop;
    allocation->references = allocation->handle_references = 1;
    allocation->handle = soft_add(SOFT_ALLOCATION, allocation);
    if (!allocation->handle) {
        allocation_unref_locked(allocation);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *ret_allocation = allocation;
    return CUDA_SUCCESS;
}

static bool is_possible(const CUmemAllocationProp *prop)
{
    return prop->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
           (prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE || is_of_host(prop)) &&
           !(prop->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

/* Its name tells which memory it is, also to a process that gets it. */
static int create_file(const struct device *device, const CUmemAllocationProp *prop)
{
    char name[64] = HOST_NAME;

    if (!is_of_host(prop))
        snprintf(name, sizeof(name), DEVICE_NAME "%u", device->number);
    return memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

CUresult soft_cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                          const CUmemAllocationProp *prop, unsigned long long flags)
{
    struct allocation *allocation;
    struct device *device;
    CUresult result;

    if (flags || size == 0 || !vmm_is_whole(size))
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_possible(prop))
        return CUDA_ERROR_NOT_SUPPORTED;
    device = device_get(is_of_host(prop) ? 0 : prop->location.id);
    if (!device || (is_of_host(prop) && prop->location.id != 0))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!is_of_host(prop) && size > device->memory_size)
        return CUDA_ERROR_OUT_OF_MEMORY;

    _cleanup_fd_ int fd = create_file(device, prop);

    if (fd < 0 || ftruncate(fd, size) || fcntl(fd, F_ADD_SEALS, SEALS))
        return CUDA_ERROR_OUT_OF_MEMORY;
    SOFT_LOCKED;
    result = allocation_create_locked(fd_steal(&fd), size, device, prop, &allocation);
    if (!result)
        *handle = allocation->handle;
    return result;
}

static struct allocation *allocation_get(CUmemGenericAllocationHandle handle)
{
    return handles_get(&soft_handles, SOFT_ALLOCATION, handle);
}

CUresult soft_cuMemRelease(CUmemGenericAllocationHandle handle)
{
    struct allocation *allocation;
    SOFT_LOCKED;

    allocation = allocation_get(handle);
    if (!allocation)
        return CUDA_ERROR_INVALID_VALUE;
    if (--allocation->handle_references == 0) {
        handles_remove(&soft_handles, SOFT_ALLOCATION, handle);
        allocation->handle = 0;
        allocation_unref_locked(allocation);
    }
    return CUDA_SUCCESS;
}

CUresult soft_cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
                       CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    struct allocation *allocation;
    struct memory *memory;
    CUresult result;

    if (size == 0 || !vmm_is_whole(ptr) || !vmm_is_whole(size) || offset || flags)
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    allocation = allocation_get(handle);
    if (!allocation || size > allocation->size || !memory_is_reserved_locked(ptr, size) ||
        memory_overlaps_locked(ptr, size))
        return CUDA_ERROR_INVALID_VALUE;
    result = memory_enter_locked(NULL, MEMORY_MAPPED, ptr, size, 0, &memory);
    if (result)
        return result;
    if (mmap((void *)ptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, allocation->fd,
             0) == MAP_FAILED) {
        memory_free_locked(memory);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memory->allocation = allocation;
    memory->device = allocation->device;
    allocation->references++;
    return CUDA_SUCCESS;
}

/* Whether [address, address + size) is exactly one or more whole mappings. */
static bool is_mapped_locked(uint64_t address, uint64_t size)
{
    uint64_t end = address + size;

    if (size == 0 || size > UINT64_MAX - address)
        return false;
    while (address < end) {
        struct memory *memory = memory_find_locked(address);

        if (!memory || memory->kind != MEMORY_MAPPED || memory->address != address ||
            memory->size > end - address)
            return false;
        address += memory->size;
    }
    return true;
}

static void leave_scratch(uint64_t address, uint64_t size)
{
    mmap((void *)address, size, PROT_READ | PROT_WRITE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

CUresult soft_cuMemUnmap(CUdeviceptr ptr, size_t size)
{
    SOFT_LOCKED;

    if (!is_mapped_locked(ptr, size))
        return CUDA_ERROR_INVALID_VALUE;
    for (uint64_t end = ptr + size; ptr < end;) {
        struct memory *memory = memory_find_locked(ptr);
        struct allocation *allocation = memory->allocation;

        ptr += memory->size;
        leave_scratch(memory->address, memory->size);
        memory_free_locked(memory);
        allocation_unref_locked(allocation);
    }
    return CUDA_SUCCESS;
}

static bool read_access(const CUmemAccessDesc *desc, size_t count, unsigned *ret_access)
{
    static const unsigned access[] = {
        [CU_MEM_ACCESS_FLAGS_PROT_NONE] = 0,
        [CU_MEM_ACCESS_FLAGS_PROT_READ] = SG_READ,
        [CU_MEM_ACCESS_FLAGS_PROT_READWRITE] = SG_READ | SG_WRITE,
    };

    *ret_access = 0;
    for (size_t i = 0; i < count; i++) {
        unsigned flags = desc[i].flags;

        if (flags > CU_MEM_ACCESS_FLAGS_PROT_READWRITE || flags == 2)
            return false;
        if (desc[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
            !device_get(desc[i].location.id))
            return false;
        *ret_access |= access[flags];
    }
    return true;
}

CUresult soft_cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc,
                             size_t count)
{
    unsigned access;

    if (!desc || count == 0 || !read_access(desc, count, &access))
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    if (!is_mapped_locked(ptr, size))
        return CUDA_ERROR_INVALID_VALUE;
    for (uint64_t end = ptr + size; ptr < end;) {
        struct memory *memory = memory_find_locked(ptr);

        memory_set_access_locked(memory, access);
        ptr += memory->size;
    }
    return CUDA_SUCCESS;
}

/* All devices of the process have the same access, as they share its memory. */
CUresult soft_cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location,
                             CUdeviceptr ptr)
{
    const struct memory *memory;

    if (location->type != CU_MEM_LOCATION_TYPE_DEVICE || !device_get(location->id))
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    memory = memory_find_locked(ptr);
    if (!memory || memory->kind != MEMORY_MAPPED)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = memory->access & SG_WRITE  ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
             : memory->access & SG_READ ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                        : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

CUresult soft_cuMemExportToShareableHandle(void *shareableHandle,
                                           CUmemGenericAllocationHandle handle,
                                           CUmemAllocationHandleType handleType,
                                           unsigned long long flags)
{
    struct allocation *allocation;
    int fd;

    if (!shareableHandle || flags || handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    allocation = allocation_get(handle);
    if (!allocation || allocation->is_imported ||
        !(allocation->properties.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
        return CUDA_ERROR_INVALID_VALUE;
    fd = fcntl(allocation->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    *(int *)shareableHandle = fd;
    return CUDA_SUCCESS;
}

/* Only what cannot shrink under us, as our own does not, may be mapped. */
static bool is_ours(int fd, uint64_t *ret_size)
{
    struct stat status;
    int seals = fcntl(fd, F_GET_SEALS);

    if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &status) || status.st_size <= 0 ||
        !vmm_is_whole(status.st_size))
        return false;
    *ret_size = status.st_size;
    return true;
}

static CUresult current_device_locked(struct device **ret_device)
{
    struct context *context;
    CUresult result = context_use_locked(&context);

    if (!result)
        *ret_device = context->device;
    return result;
}

static struct device *device_of_number(unsigned number)
{
    struct device *device;

    for (CUdevice i = 0; (device = device_get(i)); i++)
        if (device->number == number)
            return device;
    return NULL;
}

/* The descriptor tells by its name to which memory it belongs. Of a device that the process does
 * not see it becomes the current one's. */
static CUmemLocation location_of(int fd, const struct device *current)
{
    CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, current->ordinal};
    const struct device *device = NULL;
    char path[40], name[64] = "";
    const char *found;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (readlink(path, name, sizeof(name) - 1) <= 0)
        return location;
    if (strstr(name, HOST_NAME))
        return (CUmemLocation){CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
    found = strstr(name, DEVICE_NAME);
    if (found)
        device = device_of_number((unsigned)atoi(found + strlen(DEVICE_NAME)));
    if (device)
        location.id = device->ordinal;
    return location;
}

static CUmemAllocationProp properties_of(int fd, const struct device *current)
{
    return (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = location_of(fd, current),
    };
}

CUresult soft_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *osHandle,
                                             CUmemAllocationHandleType shHandleType)
{
    struct allocation *allocation;
    CUmemAllocationProp prop;
    struct device *device;
    uint64_t size;
    CUresult result;

    if (shHandleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_ours((int)(uintptr_t)osHandle, &size))
        return CUDA_ERROR_INVALID_VALUE;

    _cleanup_fd_ int fd = fcntl((int)(uintptr_t)osHandle, F_DUPFD_CLOEXEC, 0);

    if (fd < 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    SOFT_LOCKED;
    result = current_device_locked(&device);
    if (result)
        return result;
    prop = properties_of(fd, device);
    if (!is_of_host(&prop))
        device = device_get(prop.location.id);
    result = allocation_create_locked(fd_steal(&fd), size, device, &prop, &allocation);
    if (result)
        return result;
    allocation->is_imported = true;
    *handle = allocation->handle;
    return CUDA_SUCCESS;
}

/* The granularity is told also of memory that cuMemCreate does not make, as by NVIDIA's driver. */
static bool is_anywhere_on_host(const CUmemAllocationProp *prop)
{
    return prop->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
           (prop->location.type == CU_MEM_LOCATION_TYPE_HOST || is_of_host(prop) ||
            prop->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT);
}

CUresult soft_cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                            CUmemAllocationGranularity_flags option)
{
    if ((unsigned)option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_anywhere_on_host(prop) && !is_possible(prop))
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!is_anywhere_on_host(prop) && !device_get(prop->location.id))
        return CUDA_ERROR_INVALID_DEVICE;
    *granularity = VMM_GRANULARITY;
    return CUDA_SUCCESS;
}

CUresult soft_cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                                     CUmemGenericAllocationHandle handle)
{
    struct allocation *allocation;

    SOFT_LOCKED;
    allocation = allocation_get(handle);
    if (!allocation)
        return CUDA_ERROR_INVALID_VALUE;
    *prop = allocation->properties;
    return CUDA_SUCCESS;
}

CUresult soft_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
    struct memory *memory;
    struct allocation *allocation;

    SOFT_LOCKED;
    memory = memory_find_locked((uintptr_t)addr);
    if (!memory || memory->kind != MEMORY_MAPPED)
        return CUDA_ERROR_INVALID_VALUE;
    allocation = memory->allocation;
    if (!allocation->handle) {
        allocation->handle = soft_add(SOFT_ALLOCATION, allocation);
        if (!allocation->handle)
            return CUDA_ERROR_OUT_OF_MEMORY;
        allocation->references++;
    }
    allocation->handle_references++;
    *handle = allocation->handle;
    return CUDA_SUCCESS;
}
