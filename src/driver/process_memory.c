/* SPDX-License-Identifier: Apache-2.0 */
/* See process_memory.h. The declarations are ours; their layout is that of NVML 11.6 and later. */
#include "process_memory.h"

#include <dlfcn.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "text.h"

#define LIBRARY "libnvidia-ml.so.1"
#define PROCESSES_MAX 512
#define UNKNOWN UINT64_MAX

struct nvml_process {
    unsigned pid;
    unsigned long long used_memory; /* bytes */
    unsigned gpu_instance, compute_instance;
};

/* 0 is success for each. */
static struct nvml {
    void *library;
    int (*init)(void);
    int (*shutdown)(void);
    int (*find_device)(const char *pci_bus_id, void **ret_device);
    int (*list_processes)(void *device, unsigned *count, struct nvml_process *processes);
} nvml;

static void *open_beside(const char *driver_path)
{
    char path[PATH_MAX];
    const char *slash = strrchr(driver_path, '/');

    if (!slash ||
        !text_format(path, sizeof(path), "%.*s/" LIBRARY, (int)(slash - driver_path), driver_path))
        return NULL;
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static bool find_entries(void)
{
    *(void **)&nvml.init = dlsym(nvml.library, "nvmlInit_v2");
    *(void **)&nvml.shutdown = dlsym(nvml.library, "nvmlShutdown");
    *(void **)&nvml.find_device = dlsym(nvml.library, "nvmlDeviceGetHandleByPciBusId_v2");
    *(void **)&nvml.list_processes = dlsym(nvml.library, "nvmlDeviceGetComputeRunningProcesses_v3");
    return nvml.init && nvml.shutdown && nvml.find_device && nvml.list_processes;
}

void process_memory_open(const char *driver_path)
{
    nvml.library = open_beside(driver_path);
    if (!nvml.library)
        nvml.library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!nvml.library)
        return;
    if (find_entries() && nvml.init() == 0)
        return;
    dlclose(nvml.library);
    nvml = (struct nvml){0};
}

bool process_memory_read(const char *pci_bus_id, uint64_t *ret_bytes)
{
    static struct nvml_process processes[PROCESSES_MAX];
    unsigned count = PROCESSES_MAX;
    void *device;

    if (!nvml.library || nvml.find_device(pci_bus_id, &device) ||
        nvml.list_processes(device, &count, processes))
        return false;
    for (unsigned i = 0; i < count && i < PROCESSES_MAX; i++) {
        if (processes[i].pid != (unsigned)getpid() || processes[i].used_memory == UNKNOWN)
            continue;
        *ret_bytes = processes[i].used_memory;
        return true;
    }
    return false;
}

void process_memory_close(void)
{
    if (!nvml.library)
        return;
    nvml.shutdown();
    dlclose(nvml.library);
    nvml = (struct nvml){0};
}
