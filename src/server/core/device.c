/* SPDX-License-Identifier: Apache-2.0 */
/* Starts every device and records all that clients may ask about it, so that they need not ask. */
#include "device.h"

#include <errno.h>
#include <string.h>

#include "fd.h"
#include "log.h"
#include "process_memory.h"
#include "shm.h"
#include "text.h"

#define GIB (1ull << 30)

CUresult device_enter(const struct device *device)
{
    return driver.cuCtxSetCurrent(device->context);
}

/* Memory of cuMemAlloc, in whose place clients get this, is always such that adapters reach it. */
CUmemAllocationProp device_memory_properties(const struct device *device)
{
    const int reached =
        device->record.attributes[CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED];

    return (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = {CU_MEM_LOCATION_TYPE_DEVICE, device->ordinal},
        .allocFlags.gpuDirectRDMACapable = reached != 0,
    };
}

CUresult device_grant(const struct device *device, uint64_t address, uint64_t size)
{
    const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, device->ordinal},
                                    CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

    return driver.cuMemSetAccess(address, size, &access, 1);
}

CUresult device_map(const struct device *device, CUmemGenericAllocationHandle memory,
                    uint64_t address, uint64_t size)
{
    CUresult result = driver.cuMemMap(address, size, 0, memory, 0);

    if (result != CUDA_SUCCESS)
        return result;
    result = device_grant(device, address, size);
    if (result != CUDA_SUCCESS)
        driver.cuMemUnmap(address, size);
    return result;
}

/* A client may come to hold all the memory of a device, in allocations with holes between them. */
static uint64_t addresses_for(uint64_t memory)
{
    return (memory + memory / 4 + 2 * GIB - 1) / GIB * GIB;
}

static void record_attributes(struct device *device)
{
    struct device_record *record = &device->record;

    for (int i = 1; i < DEVICE_ATTRIBUTES_MAX && i < CU_DEVICE_ATTRIBUTE_MAX; i++) {
        int value = 0;
        if (driver.cuDeviceGetAttribute(&value, (CUdevice_attribute)i, device->ordinal))
            continue;
        record->attributes[i] = value;
        record->attributes_known[i] = 1;
    }
    if (!driver.cuMemGetHandleForAddressRange)
        record->attributes[CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED] = 0;
}

static void record_limits(struct device *device)
{
    struct device_record *record = &device->record;

    for (int i = 0; i < DEVICE_LIMITS_MAX && i < CU_LIMIT_MAX; i++) {
        size_t value = 0;
        if (driver.cuCtxGetLimit(&value, (CUlimit)i))
            continue;
        record->limits[i] = value;
        record->limits_known |= 1ull << i;
    }
}

static uint32_t peer_bit(const struct device *device, CUdevice peer,
                         CUdevice_P2PAttribute attribute)
{
    int value = 0;

    if (!driver.cuDeviceGetP2PAttribute ||
        driver.cuDeviceGetP2PAttribute(&value, attribute, device->ordinal, peer))
        return 0;
    return value ? 1u << peer : 0;
}

static void record_peer(struct device *device, CUdevice peer)
{
    struct device_record *record = &device->record;
    int can = 0;

    if (!driver.cuDeviceCanAccessPeer ||
        driver.cuDeviceCanAccessPeer(&can, device->ordinal, peer) || !can)
        return;
    record->peers |= 1u << peer;
    record->atomic_peers |= peer_bit(device, peer, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED);
    record->partial_atomic_peers |=
        peer_bit(device, peer, CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED);
}

static void record_peers(struct device *device, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if ((CUdevice)i != device->ordinal)
            record_peer(device, (CUdevice)i);
}

static CUresult record_memory(struct device *device)
{
    const CUmemAllocationProp prop = device_memory_properties(device);
    size_t total = 0, granularity = 0;
    CUresult result = driver.cuDeviceTotalMem_v2(&total, device->ordinal);

    if (result == CUDA_SUCCESS)
        result = driver.cuMemGetAllocationGranularity(&granularity, &prop,
                                                      CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    if (result == CUDA_SUCCESS && !granularity)
        result = CUDA_ERROR_UNKNOWN;
    device->record.total_memory = total;
    device->record.shown_memory = total;
    device->record.granularity = granularity;
    return result;
}

static CUresult record_identity(struct device *device)
{
    struct device_record *record = &device->record;
    CUuuid uuid = {0};
    CUresult result = driver.cuDeviceGetName(record->name, sizeof(record->name), device->ordinal);

    if (result == CUDA_SUCCESS)
        result = driver.cuDeviceGetUuid_v2(&uuid, device->ordinal);
    if (result == CUDA_SUCCESS)
        result = driver.cuDeviceGetPCIBusId(record->pci_bus_id, sizeof(record->pci_bus_id),
                                            device->ordinal);
    memcpy(record->uuid, uuid.bytes, sizeof(record->uuid));
    return result;
}

static CUresult open_context(struct device *device, prepare_context *prepare)
{
    CUresult result = driver.cuDevicePrimaryCtxRetain(&device->context, device->ordinal);

    if (result == CUDA_SUCCESS)
        result = device_enter(device);
    if (result == CUDA_SUCCESS)
        result = driver.cuCtxGetStreamPriorityRange(&device->record.priority_least,
                                                    &device->record.priority_greatest);
    if (result == CUDA_SUCCESS)
        result = driver.cuStreamCreateWithPriority(&device->watch, CU_STREAM_NON_BLOCKING,
                                                   device->record.priority_least);
    if (result == CUDA_SUCCESS)
        prepare();
    return result;
}

static CUresult device_init(struct device *device, CUdevice ordinal, unsigned count,
                            prepare_context *prepare)
{
    device->ordinal = ordinal;
    CUresult result = record_identity(device);

    log_line("Creating server context on device %d (%s)", ordinal, device->record.name);
    if (result == CUDA_SUCCESS)
        result = open_context(device, prepare);
    if (result != CUDA_SUCCESS)
        return result;
    record_attributes(device);
    record_limits(device);
    record_peers(device, count);
    return record_memory(device);
}

static int make_table(struct devices *devices)
{
    struct device_record records[ATTACH_DEVICES_MAX];

    for (unsigned i = 0; i < devices->count; i++)
        records[i] = devices->device[i].record;
    return shm_create_read_only("funnel-devices", records, devices->count * sizeof(records[0]),
                                &devices->table_fd);
}

/* The memory of the process, where that is counted: a spare lane and a standby take as much. */
static void measure_own_memory(struct devices *devices)
{
    process_memory_open(driver_path());
    for (unsigned i = 0; i < devices->count; i++)
        if (!process_memory_read(devices->device[i].record.pci_bus_id, &devices->own_memory[i]))
            devices->own_memory[i] = 0;
    process_memory_close();
}

int devices_init(struct devices *devices, bool measures, prepare_context *prepare, char *why,
                 size_t why_size)
{
    int count = 0;

    *devices = (struct devices){.table_fd = -1};
    driver.cuDriverGetVersion(&devices->driver_version);
    driver.cuDeviceGetCount(&count);
    if (count > ATTACH_DEVICES_MAX)
        count = ATTACH_DEVICES_MAX;

    for (int i = 0; i < count; i++) {
        struct device *device = &devices->device[i];
        CUresult result = device_init(device, i, (unsigned)count, prepare);
        if (result != CUDA_SUCCESS) {
            text_format(why, why_size, "device %d cannot be used: %s", i,
                        driver_error_name(result));
            return -EIO;
        }
        uint64_t stride = addresses_for(device->record.total_memory);
        if (stride > devices->stride)
            devices->stride = stride;
        devices->count++;
    }

    if (measures)
        measure_own_memory(devices);
    int error = make_table(devices);
    if (error)
        text_format(why, why_size, "no memory for the device table: %s", strerror(-error));
    return error;
}
