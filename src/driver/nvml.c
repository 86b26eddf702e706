/* SPDX-License-Identifier: Apache-2.0 */
/* See nvml.h. */
#include "nvml.h"

#include <dlfcn.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "text.h"

#define LIBRARY "libnvidia-ml.so.1"

static void *open_beside(const char *driver_path)
{
    char path[PATH_MAX];
    const char *slash = strrchr(driver_path, '/');

    if (!slash ||
        !text_format(path, sizeof(path), "%.*s/" LIBRARY, (int)(slash - driver_path), driver_path))
        return NULL;
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* funnel enable --nvml puts Funnel's library first. */
static void *open_by_name(void)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

    if (library && dlsym(library, NVML_FUNNEL_SIGN)) {
        dlclose(library);
        return NULL;
    }
    return library;
}

static bool find_entries(struct nvml *nvml)
{
    const struct {
        const char *name;
        void *entry;
    } names[] = {
        {"nvmlInit_v2", &nvml->init},
        {"nvmlShutdown", &nvml->shutdown},
        {"nvmlDeviceGetHandleByPciBusId_v2", &nvml->find_device},
        {"nvmlDeviceGetComputeRunningProcesses_v3", &nvml->list_processes},
        {"nvmlDeviceGetTemperature", &nvml->temperature},
        {"nvmlDeviceGetPowerUsage", &nvml->power},
        {"nvmlDeviceGetEnforcedPowerLimit", &nvml->power_limit},
        {"nvmlDeviceGetUtilizationRates", &nvml->utilization},
        {"nvmlDeviceGetClockInfo", &nvml->clock},
        {"nvmlDeviceGetMemoryInfo", &nvml->memory},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        *(void **)names[i].entry = dlsym(nvml->library, names[i].name);
    return nvml->init && nvml->shutdown && nvml->find_device;
}

bool nvml_open(const char *driver_path, struct nvml *ret_nvml)
{
    struct nvml nvml = {.library = open_beside(driver_path)};

    *ret_nvml = (struct nvml){0};
    if (!nvml.library)
        nvml.library = open_by_name();
    if (!nvml.library)
        return false;
    if (!find_entries(&nvml) || nvml.init() != 0) {
        dlclose(nvml.library);
        return false;
    }
    *ret_nvml = nvml;
    return true;
}

void nvml_close(struct nvml *nvml)
{
    if (!nvml->library)
        return;
    nvml->shutdown();
    dlclose(nvml->library);
    *nvml = (struct nvml){0};
}
