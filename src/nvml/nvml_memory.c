/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a device: its own, but for a client whose totals show its limit (funnel run
 * --show-limit). */
#include <unistd.h>

#include "nvml_device.h"
#include "nvml_entries.h"

const int funnelNvml = 1;

/* The limit that this process is shown, and what it has of that; false where it is shown none. */
static bool own_limit(nvml_device device, uint64_t *ret_limit, uint64_t *ret_used)
{
    uint8_t uuid[16];
    const struct facts *facts = device_facts(device, false, uuid);
    struct device_client client;
    unsigned cursor = 0;

    *ret_limit = *ret_used = 0;
    while (facts && !*ret_limit && facts_next_client(facts, uuid, &cursor, &client)) {
        if (client.pid != (unsigned)getpid() || !client.client->row.limits.totals_show_limit)
            continue;
        *ret_limit = client.client->row.limits.memory_limit[client.ordinal];
        *ret_used = client.client->row.memory_used[client.ordinal];
    }
    if (facts)
        facts_end(facts);
    return *ret_limit > 0;
}

/* A limit that is above the device's memory limits nothing. */
static void apply_limit(nvml_device device, uint64_t *total, uint64_t *free_memory, uint64_t *used)
{
    uint64_t limit, own;

    if (!own_limit(device, &limit, &own) || limit >= *total)
        return;
    *total = limit;
    *used = own < limit ? own : limit;
    *free_memory = limit - *used < *free_memory ? limit - *used : *free_memory;
}

int nvmlDeviceGetMemoryInfo(nvml_device device, struct nvml_memory *memory)
{
    int result = NVML_BASE(nvmlDeviceGetMemoryInfo)(device, memory);

    if (result == NVML_SUCCESS)
        apply_limit(device, &memory->total, &memory->free, &memory->used);
    return result;
}

int nvmlDeviceGetMemoryInfo_v2(nvml_device device, struct nvml_memory_v2 *memory)
{
    int result = NVML_BASE(nvmlDeviceGetMemoryInfo_v2)(device, memory);
    uint64_t total;

    if (result != NVML_SUCCESS)
        return result;
    total = memory->total;
    apply_limit(device, &memory->total, &memory->free, &memory->used);
    if (memory->total != total)
        memory->reserved = 0;
    return result;
}
