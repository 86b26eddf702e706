/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory management. The server chooses addresses that no other client has, makes memory
 * and maps it; here the addresses are kept free of everything else. What is mapped where is known
 * on both sides, so that wrong calls and questions need no round trip.
 */
#include "client_vmm.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "cleanup.h"
#include "client_prototypes.h"
#include "client_stream.h"
#include "fd.h"
#include "sock.h"
#include "wire_calls.h"

#define PLACES_TRIED 8

/* Physical memory. The handle is the server's for as long as it is held or mapped; the program may
 * use it while it holds references. */
struct physical {
    uint64_t handle;
    struct device *device;
    uint64_t size; /* 0 = imported, nobody says */
    unsigned references, mappings;
    CUmemAllocationProp prop;
};

struct mapping {
    uint64_t address, size, id;
    struct physical *physical;
    unsigned char access[ATTACH_DEVICES_MAX]; /* CUmemAccess_flags */
};

static struct vmm {
    pthread_mutex_t lock;       /* of the tables, held through the calls that change them */
    struct ranges reservations; /* no values */
    struct ranges mappings;
} vmm;

void vmm_init(void)
{
    pthread_mutex_init(&vmm.lock, NULL);
    ranges_init(&vmm.reservations);
    ranges_init(&vmm.mappings);
}

#define VMM_LOCKED _cleanup_mutex_ pthread_mutex_t *vmm_held = mutex_hold(&vmm.lock)

static struct mapping *mapping_at(uint64_t address)
{
    const struct range *range = ranges_find(&vmm.mappings, address);

    return range ? range->value : NULL;
}

bool vmm_find(uint64_t address, struct allocation *ret_allocation)
{
    VMM_LOCKED;
    const struct mapping *mapping = mapping_at(address);

    if (!mapping)
        return false;
    *ret_allocation = (struct allocation){
        .address = mapping->address,
        .size = mapping->size,
        .id = mapping->id,
        .context = mapping->physical->device->primary,
    };
    return true;
}

static bool has_access(const struct mapping *mapping)
{
    for (int i = 0; i < client->device_count; i++)
        if (mapping->access[i] != CU_MEM_ACCESS_FLAGS_PROT_NONE)
            return true;
    return false;
}

bool vmm_covers(uint64_t address, uint64_t size)
{
    VMM_LOCKED;

    for (;;) {
        const struct mapping *mapping = mapping_at(address);
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

/* ---- reservations ---- */

bool vmm_is_reserved(uint64_t address)
{
    if (address < RESERVE_FIRST || address >= RESERVE_END)
        return false;
    VMM_LOCKED;
    return ranges_find(&vmm.reservations, address);
}

static CUresult unreserve(uint64_t address)
{
    struct wire_fnUnreserve in = {.address = address};
    CUresult result;

    channel_lock(&client->channel);
    result = wire_fnUnreserve(&client->channel, &in);
    channel_unlock(&client->channel);
    return result;
}

/* Nobody else of this process may come to lie where the GPU sees our memory. */
static bool occupy(uint64_t address, uint64_t size)
{
    void *want = (void *)(uintptr_t)address;
    void *got = mmap(want, size, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

    if (got == MAP_FAILED)
        return false;
    if (got != want) {
        munmap(got, size);
        return false;
    }
    madvise(got, size, MADV_DONTFORK);
    return true;
}

static bool enter_reservation(uint64_t address, uint64_t size)
{
    if (!occupy(address, size))
        return false;
    if (ranges_add(&vmm.reservations, address, size, client) == 0)
        return true;
    munmap((void *)(uintptr_t)address, size);
    return false;
}

/* The server knows what no client has; what is taken in this process it learns by being asked for
 * another. */
static CUresult reserve(struct wire_fnReserve *in, uint64_t *ret_address)
{
    struct wire_fnReserve_reply out;

    for (int i = 0; i < PLACES_TRIED; i++) {
        CUresult result = wire_fnReserve(&client->channel, in, &out);

        if (result != CUDA_SUCCESS)
            return result;
        if (out.address < RESERVE_FIRST || out.address >= RESERVE_END ||
            in->size > RESERVE_END - out.address)
            return CUDA_ERROR_MPS_RPC_FAILURE;
        if (enter_reservation(out.address, in->size)) {
            *ret_address = out.address;
            return CUDA_SUCCESS;
        }
        unreserve(out.address);
        in->from = out.address + in->size;
    }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult client_cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment,
                                    CUdeviceptr addr, unsigned long long flags)
{
    struct wire_fnReserve in;
    uint64_t address;
    CUresult result = client_error();

    if (alignment < RESERVE_GRANULARITY && (alignment & (alignment - 1)) == 0)
        alignment = RESERVE_GRANULARITY;
    if (!ptr || size == 0 || size % RESERVE_GRANULARITY || alignment & (alignment - 1) || flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    VMM_LOCKED;
    in = (struct wire_fnReserve){.from = addr, .size = size, .alignment = alignment};
    result = reserve(&in, &address);
    if (result == CUDA_SUCCESS)
        *ptr = address;
    return result;
}

CUresult client_cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
    const struct range *range, *next;
    VMM_LOCKED;

    range = ranges_find(&vmm.reservations, ptr);
    if (!range || range->start != ptr || range->size != size)
        return CUDA_ERROR_INVALID_VALUE;
    next = ranges_next(&vmm.mappings, ptr);
    if (next && next->start - ptr < size)
        return CUDA_ERROR_INVALID_VALUE;
    ranges_remove(&vmm.reservations, ptr, NULL);
    munmap((void *)(uintptr_t)ptr, size);
    return unreserve(ptr);
}

/* ---- physical memory ---- */

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
    physical->handle = handles_add(&client->handles, WIRE_ALLOCATION, physical);
    if (physical->handle)
        return physical;
    free(physical);
    return NULL;
}

static void physical_forget(struct physical *physical)
{
    handles_remove(&client->handles, WIRE_ALLOCATION, physical->handle);
    free(physical);
}

/* Neither held nor mapped, it is the server's to end. */
static void physical_settle_locked(struct physical *physical)
{
    struct wire_cuMemRelease in = {.handle = physical->handle};

    if (physical->references || physical->mappings)
        return;
    channel_lock(&client->channel);
    wire_cuMemRelease(&client->channel, &in);
    channel_unlock(&client->channel);
    physical_forget(physical);
}

static struct physical *physical_lookup_locked(CUmemGenericAllocationHandle handle)
{
    struct physical *physical = handles_get(&client->handles, WIRE_ALLOCATION, handle);

    return physical && physical->references ? physical : NULL;
}

CUresult client_cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                            const CUmemAllocationProp *prop, unsigned long long flags)
{
    struct wire_cuMemCreate in = {.size = size};
    struct physical *physical;
    struct device *device;
    CUresult result = check_prop(prop, &device);

    if (!handle || flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    if (size == 0 || size % device->heap.granularity)
        return CUDA_ERROR_INVALID_VALUE;
    VMM_LOCKED;
    physical = physical_create();
    if (!physical)
        return CUDA_ERROR_OUT_OF_MEMORY;
    physical->device = device;
    physical->size = size;
    physical->prop = *prop;
    in.handle = physical->handle;
    in.device = device->index;
    in.handle_types = prop->requestedHandleTypes;
    result = wire_cuMemCreate(&client->channel, &in);
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

    physical = physical_lookup_locked(handle);
    if (!physical)
        return CUDA_ERROR_INVALID_VALUE;
    physical->references--;
    physical_settle_locked(physical);
    return client_error();
}

CUresult client_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
    struct mapping *mapping;
    VMM_LOCKED;

    mapping = mapping_at((uintptr_t)addr);
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

    physical = physical_lookup_locked(handle);
    if (!physical)
        return CUDA_ERROR_INVALID_VALUE;
    *prop = physical->prop;
    return CUDA_SUCCESS;
}

CUresult client_cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                              CUmemAllocationGranularity_flags option)
{
    struct device *device;
    CUresult result = check_prop(prop, &device);

    if ((unsigned)option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *granularity = device->heap.granularity;
    return result;
}

/* ---- as descriptors ---- */

CUresult client_cuMemExportToShareableHandle(void *shareableHandle,
                                             CUmemGenericAllocationHandle handle,
                                             CUmemAllocationHandleType handleType,
                                             unsigned long long flags)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->socket_lock);
    struct wire_cuMemExportToShareableHandle in = {.handle = handle};
    struct physical *physical;
    CUresult result;
    VMM_LOCKED;

    physical = physical_lookup_locked(handle);
    if (!shareableHandle || flags || !physical ||
        handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        !(physical->prop.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
        return CUDA_ERROR_INVALID_VALUE;
    result = wire_cuMemExportToShareableHandle(&client->channel, &in);
    return result == CUDA_SUCCESS
               ? granule_receive(SOCKET_ALLOCATION, handle, (int *)shareableHandle)
               : result;
}

static struct device *device_with_index(uint32_t index)
{
    for (int i = 0; i < client->device_count; i++)
        if (client->devices[i].index == index)
            return &client->devices[i];
    return NULL;
}

static CUresult import(struct physical *physical, int fd)
{
    struct wire_cuMemImportFromShareableHandle in = {.handle = physical->handle};
    struct wire_cuMemImportFromShareableHandle_reply out;
    struct socket_message message = {.kind = SOCKET_BLOB};
    CUresult result;

    in.blob = message.id = __atomic_add_fetch(&client->next_blob, 1, __ATOMIC_RELAXED);
    if (sock_send(client->socket, &message, sizeof(message), &fd, 1) < 0)
        return CUDA_ERROR_INVALID_VALUE;
    result = wire_cuMemImportFromShareableHandle(&client->channel, &in, &out);
    if (result != CUDA_SUCCESS)
        return result;
    physical->device = device_with_index(out.device);
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
    result = import(physical, (int)(uintptr_t)osHandle);
    if (result != CUDA_SUCCESS) {
        physical_forget(physical);
        return result;
    }
    if (!physical->device) {
        physical->references = 0;
        physical_settle_locked(physical);
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *handle = physical->handle;
    return CUDA_SUCCESS;
}

/* ---- mappings ---- */

static CUresult map_locked(struct physical *physical, struct mapping *mapping)
{
    struct wire_cuMemMap in = {
        .handle = physical->handle, .ptr = mapping->address, .size = mapping->size};
    CUresult result;

    if (ranges_add(&vmm.mappings, mapping->address, mapping->size, mapping) < 0)
        return CUDA_ERROR_INVALID_VALUE;
    result = wire_cuMemMap(&client->channel, &in);
    if (result != CUDA_SUCCESS)
        ranges_remove(&vmm.mappings, mapping->address, NULL);
    else
        physical->mappings++;
    return result;
}

static bool in_reservation_locked(uint64_t address, uint64_t size)
{
    const struct range *range = ranges_find(&vmm.reservations, address);

    return range && size <= range->size - (address - range->start);
}

CUresult client_cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
                         CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    struct physical *physical;
    struct mapping *mapping;
    CUresult result;
    VMM_LOCKED;

    physical = physical_lookup_locked(handle);
    if (!physical || size == 0 || offset || flags ||
        (ptr | size) % physical->device->heap.granularity ||
        (physical->size && size > physical->size) || !in_reservation_locked(ptr, size))
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
        const struct mapping *mapping = mapping_at(address);

        if (!mapping || mapping->address != address || mapping->size > end - address)
            return false;
        address += mapping->size;
    }
    return true;
}

static void forget_mappings_locked(uint64_t address, uint64_t size)
{
    for (uint64_t end = address + size; address < end;) {
        struct mapping *mapping = mapping_at(address);

        ranges_remove(&vmm.mappings, address, NULL);
        address += mapping->size;
        mapping->physical->mappings--;
        physical_settle_locked(mapping->physical);
        free(mapping);
    }
}

/* Memory under a running kernel must not go away: that fault would end every client. */
static CUresult wait_for_own_work(void)
{
    CUresult result = client_error();

    for (int i = 0; i < client->device_count && result == CUDA_SUCCESS; i++)
        result = stream_drain_device(&client->devices[i]);
    return result;
}

CUresult client_cuMemUnmap(CUdeviceptr ptr, size_t size)
{
    struct wire_cuMemUnmap in = {.ptr = ptr, .size = size};
    CUresult result = wait_for_own_work();

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
        struct mapping *mapping = mapping_at(address);

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
    mapping = mapping_at(ptr);
    if (!mapping)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = mapping->access[location->id];
    return CUDA_SUCCESS;
}
