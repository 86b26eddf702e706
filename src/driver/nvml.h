/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry points of NVIDIA's management library (NVML) that the server calls. The library may be
 * called from several threads.
 */
#pragma once

#include <stdbool.h>

#include "nvml_abi.h"

#define NVML_TEMPERATURE_GPU 0
enum nvml_clock { NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2 };

/* Each entry returns 0 on success. */
struct nvml {
    void *library;
    int (*init)(void);
    int (*shutdown)(void);
    int (*find_device)(const char *pci_bus_id, void **ret_device);
    /* NULL where the library lacks the entry: */
    int (*list_processes)(void *device, unsigned *count, struct nvml_process *processes);
    int (*temperature)(void *device, int sensor, unsigned *ret_celsius);
    int (*power)(void *device, unsigned *ret_milliwatts);
    int (*power_limit)(void *device, unsigned *ret_milliwatts);
    int (*utilization)(void *device, struct nvml_utilization *ret_utilization);
    int (*clock)(void *device, int kind, unsigned *ret_megahertz);
    int (*memory)(void *device, struct nvml_memory *ret_memory);
};

/* Opens and initializes the library beside the driver's, or by its name: false without one.
 * Funnel's own of that name is none: it would ask the daemon, which asks this server. */
bool nvml_open(const char *driver_path, struct nvml *ret_nvml);

/* Accepts a library that was not opened, or is closed already. */
void nvml_close(struct nvml *nvml);
