/* SPDX-License-Identifier: Apache-2.0 */
/* See process_memory.h. */
#include "process_memory.h"

#include <unistd.h>

#include "nvml.h"

#define PROCESSES_MAX 512

static struct nvml nvml;

void process_memory_open(const char *driver_path)
{
    nvml_open(driver_path, &nvml);
}

bool process_memory_read(const char *pci_bus_id, uint64_t *ret_bytes)
{
    static struct nvml_process processes[PROCESSES_MAX];
    unsigned count = PROCESSES_MAX;
    void *device;

    if (!nvml.list_processes || nvml.find_device(pci_bus_id, &device) ||
        nvml.list_processes(device, &count, processes))
        return false;
    for (unsigned i = 0; i < count && i < PROCESSES_MAX; i++) {
        if (processes[i].pid != (unsigned)getpid() ||
            processes[i].used_memory == NVML_MEMORY_UNKNOWN)
            continue;
        *ret_bytes = processes[i].used_memory;
        return true;
    }
    return false;
}

void process_memory_close(void)
{
    nvml_close(&nvml);
}
