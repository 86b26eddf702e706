/* SPDX-License-Identifier: Apache-2.0 */
/* See nvml_soft.h. */
#include "nvml_soft.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "nvml_entries.h"
#include "nvml_facts.h"
#include "nvml_soft_devices.h"
#include "text.h"

static int answer_text(const char *text, char *ret_text, unsigned size)
{
    return text_copy(ret_text, size, text) ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

/* ---- the system ---- */

static const char *soft_error_string(int result)
{
    switch (result) {
    case NVML_SUCCESS:
        return "Success";
    case NVML_ERROR_UNINITIALIZED:
        return "NVML was not initialized";
    case NVML_ERROR_INVALID_ARGUMENT:
        return "Invalid argument";
    case NVML_ERROR_NOT_SUPPORTED:
        return "Not supported by the software GPU";
    case NVML_ERROR_NO_PERMISSION:
        return "No permission";
    case NVML_ERROR_NOT_FOUND:
        return "Not found";
    case NVML_ERROR_INSUFFICIENT_SIZE:
        return "The buffer is too small";
    case NVML_ERROR_DRIVER_NOT_LOADED:
        return "There is no NVIDIA driver, and no daemon of Funnel's answers";
    case NVML_ERROR_FUNCTION_NOT_FOUND:
        return "The function does not exist";
    case NVML_ERROR_MEMORY:
        return "Out of memory";
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
        return "Unknown version of an argument";
    }
    return "Unknown error";
}

static int soft_version(char *ret_version, unsigned size)
{
    int result = soft_check_initialized(ret_version);

    return result == NVML_SUCCESS ? answer_text(FUNNEL_VERSION, ret_version, size) : result;
}

static int soft_cuda_version(int *ret_version)
{
    int result = soft_check_initialized(ret_version);

    if (result == NVML_SUCCESS)
        *ret_version = soft_gpu_count() ? (int)soft_gpu_at(0)->cuda_version : 0;
    return result;
}

/* ---- handles ---- */

static int soft_count(unsigned *ret_count)
{
    int result = soft_check_initialized(ret_count);

    if (result == NVML_SUCCESS)
        *ret_count = soft_gpu_count();
    return result;
}

static int soft_by_index(unsigned index, nvml_device *ret_device)
{
    int result = soft_check_initialized(ret_device);

    if (result == NVML_SUCCESS && !soft_gpu_at(index))
        result = NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS)
        *ret_device = (nvml_device)soft_gpu_at(index);
    return result;
}

static int soft_by_uuid(const char *uuid, nvml_device *ret_device)
{
    int result = soft_check_initialized(ret_device && uuid ? uuid : NULL);
    char text[GPU_UUID_TEXT];

    for (unsigned i = 0; result == NVML_SUCCESS && i < soft_gpu_count(); i++) {
        device_uuid_text(&soft_gpu_at(i)->facts, text);
        if (strcasecmp(uuid, text) != 0)
            continue;
        *ret_device = (nvml_device)soft_gpu_at(i);
        return NVML_SUCCESS;
    }
    return result == NVML_SUCCESS ? NVML_ERROR_NOT_FOUND : result;
}

static bool parse_bus_id(const char *text, struct nvml_pci *ret_pci)
{
    *ret_pci = (struct nvml_pci){.domain = 0};
    return sscanf(text, "%x:%x:%x", &ret_pci->domain, &ret_pci->bus, &ret_pci->device) == 3;
}

static int soft_by_bus_id(const char *bus_id, nvml_device *ret_device)
{
    int result = soft_check_initialized(ret_device && bus_id ? bus_id : NULL);
    struct nvml_pci wanted, own;

    if (result == NVML_SUCCESS && !parse_bus_id(bus_id, &wanted))
        result = NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned i = 0; result == NVML_SUCCESS && i < soft_gpu_count(); i++) {
        if (!parse_bus_id(soft_gpu_at(i)->facts.pci_bus_id, &own) || own.domain != wanted.domain ||
            own.bus != wanted.bus || own.device != wanted.device)
            continue;
        *ret_device = (nvml_device)soft_gpu_at(i);
        return NVML_SUCCESS;
    }
    return result == NVML_SUCCESS ? NVML_ERROR_NOT_FOUND : result;
}

/* ---- a device ---- */

static int soft_index(nvml_device device, unsigned *ret_index)
{
    const struct soft_gpu *gpu;
    int result = soft_check_device(device, ret_index, &gpu);

    if (result == NVML_SUCCESS)
        *ret_index = (unsigned)(gpu - soft_gpu_at(0));
    return result;
}

static int soft_name(nvml_device device, char *ret_name, unsigned size)
{
    const struct soft_gpu *gpu;
    int result = soft_check_device(device, ret_name, &gpu);

    return result == NVML_SUCCESS ? answer_text(gpu->facts.name, ret_name, size) : result;
}

static int soft_uuid(nvml_device device, char *ret_uuid, unsigned size)
{
    char text[GPU_UUID_TEXT];
    const struct soft_gpu *gpu;
    int result = soft_check_device(device, ret_uuid, &gpu);

    if (result != NVML_SUCCESS)
        return result;
    device_uuid_text(&gpu->facts, text);
    return answer_text(text, ret_uuid, size);
}

/* The structure of the first version of the call ends before the subsystem's ID. */
static int answer_pci(nvml_device device, void *ret_pci, bool is_first)
{
    struct nvml_pci pci;
    const struct soft_gpu *gpu;
    int result = soft_check_device(device, ret_pci, &gpu);

    if (result != NVML_SUCCESS)
        return result;
    if (!parse_bus_id(gpu->facts.pci_bus_id, &pci))
        return NVML_ERROR_NOT_SUPPORTED;
    text_format(pci.legacy_bus_id, sizeof(pci.legacy_bus_id), "%04X:%02X:%02X.0",
                pci.domain & 0xffff, pci.bus & 0xff, pci.device & 0xff);
    text_format(pci.bus_id, sizeof(pci.bus_id), "%08X:%02X:%02X.0", pci.domain, pci.bus,
                pci.device);
    memcpy(ret_pci, &pci, is_first ? offsetof(struct nvml_pci, subsystem_id) : sizeof(pci));
    return NVML_SUCCESS;
}

static int soft_pci_first(nvml_device device, void *ret_pci)
{
    return answer_pci(device, ret_pci, true);
}

static int soft_pci(nvml_device device, void *ret_pci)
{
    return answer_pci(device, ret_pci, false);
}

static int soft_capability(nvml_device device, int *ret_major, int *ret_minor)
{
    const struct soft_gpu *gpu;
    int result = soft_check_device(device, ret_major && ret_minor ? ret_major : NULL, &gpu);

    if (result == NVML_SUCCESS) {
        *ret_major = (int)gpu->facts.compute_major;
        *ret_minor = (int)gpu->facts.compute_minor;
    }
    return result;
}

/* No MIG device, and compute mode "default". */
static int soft_zero(nvml_device device, unsigned *ret_value)
{
    const struct soft_gpu *gpu;
    int result = soft_check_device(device, ret_value, &gpu);

    if (result == NVML_SUCCESS)
        *ret_value = 0;
    return result;
}

/* ---- what the clients use ---- */

/* Each server has a software GPU of its own, and all of them are one device here. */
static uint64_t memory_in_use(const struct facts *facts, const struct server_device *device)
{
    uint64_t used = 0;
    unsigned ordinal;

    for (unsigned i = 0; i < facts->now.server_count; i++) {
        const struct command_server *server = &facts->now.servers[i];

        if (server->responding && facts_find_device(server, device->uuid, &ordinal) &&
            server->memory_free[ordinal] < server->devices[ordinal].memory_total)
            used += server->devices[ordinal].memory_total - server->memory_free[ordinal];
    }
    return used < device->memory_total ? used : device->memory_total;
}

static int soft_memory(nvml_device device, struct nvml_memory *ret_memory)
{
    const struct facts *facts;
    const struct soft_gpu *gpu;
    int result = soft_check_device(device, ret_memory, &gpu);

    if (result != NVML_SUCCESS)
        return result;
    facts = facts_begin(false);
    if (!facts)
        return NVML_ERROR_UNKNOWN;
    ret_memory->total = gpu->facts.memory_total;
    ret_memory->used = memory_in_use(facts, &gpu->facts);
    ret_memory->free = ret_memory->total - ret_memory->used;
    facts_end(facts);
    return NVML_SUCCESS;
}

static int soft_memory_v2(nvml_device device, struct nvml_memory_v2 *memory)
{
    struct nvml_memory first;
    int result = soft_memory(device, memory ? &first : NULL);

    if (result != NVML_SUCCESS)
        return result;
    if (memory->version != NVML_VERSION(struct nvml_memory_v2, 2))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    *memory = (struct nvml_memory_v2){memory->version, first.total, 0, first.free, first.used};
    return NVML_SUCCESS;
}

static int soft_utilization(nvml_device device, struct nvml_utilization *ret_utilization)
{
    const struct facts *facts;
    const struct soft_gpu *gpu;
    int result = soft_check_device(device, ret_utilization, &gpu);

    if (result != NVML_SUCCESS)
        return result;
    facts = facts_begin(true);
    if (!facts)
        return NVML_ERROR_UNKNOWN;
    *ret_utilization = (struct nvml_utilization){.gpu = facts_busy_percent(facts, gpu->facts.uuid)};
    facts_end(facts);
    return NVML_SUCCESS;
}

/* All processes of the software GPU are clients, which are added above this. */
static int soft_no_processes(nvml_device device, unsigned *count, void *unused)
{
    const struct soft_gpu *gpu;
    int result = soft_check_device(device, count, &gpu);

    if (result == NVML_SUCCESS)
        *count = 0;
    return result;
}

static int soft_no_details(nvml_device device, struct nvml_process_details *list)
{
    const struct soft_gpu *gpu;
    int result = soft_check_device(device, list, &gpu);

    if (result == NVML_SUCCESS)
        list->count = 0;
    return result;
}

static int soft_no_samples(nvml_device device, struct nvml_process_sample *unused, unsigned *count,
                           unsigned long long after)
{
    return soft_no_processes(device, count, NULL);
}

static int soft_no_uses(nvml_device device, struct nvml_process_uses *uses)
{
    const struct soft_gpu *gpu;
    int result = soft_check_device(device, uses, &gpu);

    if (result == NVML_SUCCESS)
        uses->count = 0;
    return result;
}

/* ---- the table ---- */

static const struct {
    enum nvml_index index;
    void *function;
} functions[] = {
    {INDEX_nvmlInit, (void *)soft_init},
    {INDEX_nvmlInit_v2, (void *)soft_init},
    {INDEX_nvmlInitWithFlags, (void *)soft_init_with_flags},
    {INDEX_nvmlShutdown, (void *)soft_shutdown},
    {INDEX_nvmlErrorString, (void *)soft_error_string},
    {INDEX_nvmlSystemGetDriverVersion, (void *)soft_version},
    {INDEX_nvmlSystemGetNVMLVersion, (void *)soft_version},
    {INDEX_nvmlSystemGetCudaDriverVersion, (void *)soft_cuda_version},
    {INDEX_nvmlSystemGetCudaDriverVersion_v2, (void *)soft_cuda_version},
    {INDEX_nvmlDeviceGetCount, (void *)soft_count},
    {INDEX_nvmlDeviceGetCount_v2, (void *)soft_count},
    {INDEX_nvmlDeviceGetHandleByIndex, (void *)soft_by_index},
    {INDEX_nvmlDeviceGetHandleByIndex_v2, (void *)soft_by_index},
    {INDEX_nvmlDeviceGetHandleByUUID, (void *)soft_by_uuid},
    {INDEX_nvmlDeviceGetHandleByPciBusId, (void *)soft_by_bus_id},
    {INDEX_nvmlDeviceGetHandleByPciBusId_v2, (void *)soft_by_bus_id},
    {INDEX_nvmlDeviceGetIndex, (void *)soft_index},
    {INDEX_nvmlDeviceGetName, (void *)soft_name},
    {INDEX_nvmlDeviceGetUUID, (void *)soft_uuid},
    {INDEX_nvmlDeviceGetPciInfo, (void *)soft_pci_first},
    {INDEX_nvmlDeviceGetPciInfo_v2, (void *)soft_pci},
    {INDEX_nvmlDeviceGetPciInfo_v3, (void *)soft_pci},
    {INDEX_nvmlDeviceGetCudaComputeCapability, (void *)soft_capability},
    {INDEX_nvmlDeviceIsMigDeviceHandle, (void *)soft_zero},
    {INDEX_nvmlDeviceGetComputeMode, (void *)soft_zero},
    {INDEX_nvmlDeviceGetMemoryInfo, (void *)soft_memory},
    {INDEX_nvmlDeviceGetMemoryInfo_v2, (void *)soft_memory_v2},
    {INDEX_nvmlDeviceGetUtilizationRates, (void *)soft_utilization},
    {INDEX_nvmlDeviceGetComputeRunningProcesses, (void *)soft_no_processes},
    {INDEX_nvmlDeviceGetComputeRunningProcesses_v2, (void *)soft_no_processes},
    {INDEX_nvmlDeviceGetComputeRunningProcesses_v3, (void *)soft_no_processes},
    {INDEX_nvmlDeviceGetGraphicsRunningProcesses, (void *)soft_no_processes},
    {INDEX_nvmlDeviceGetGraphicsRunningProcesses_v2, (void *)soft_no_processes},
    {INDEX_nvmlDeviceGetGraphicsRunningProcesses_v3, (void *)soft_no_processes},
    {INDEX_nvmlDeviceGetMPSComputeRunningProcesses, (void *)soft_no_processes},
    {INDEX_nvmlDeviceGetMPSComputeRunningProcesses_v2, (void *)soft_no_processes},
    {INDEX_nvmlDeviceGetMPSComputeRunningProcesses_v3, (void *)soft_no_processes},
    {INDEX_nvmlDeviceGetRunningProcessDetailList, (void *)soft_no_details},
    {INDEX_nvmlDeviceGetProcessUtilization, (void *)soft_no_samples},
    {INDEX_nvmlDeviceGetProcessesUtilizationInfo, (void *)soft_no_uses},
    {INDEX_nvmlDeviceGetAccountingPids, (void *)soft_no_processes},
};

void soft_fill(void)
{
    for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
        nvml_entry_set(functions[i].index, functions[i].function);
}
