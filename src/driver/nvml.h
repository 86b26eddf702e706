/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry points of NVIDIA's management library (NVML) that Funnel calls. The declarations are
 * ours; names and layouts are those of NVIDIA's reference of the library, version 11.6 and later.
 * The library may be called from several threads.
 */
#pragma once

#include <stdbool.h>

#define NVML_TEMPERATURE_GPU 0
enum nvml_clock { NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2 };

struct nvml_process {
    unsigned pid;
    unsigned long long used_memory; /* bytes */
    unsigned gpu_instance, compute_instance;
};

struct nvml_utilization {
    unsigned gpu, memory; /* percent of the last sampling period of the driver */
};

struct nvml_memory {
    unsigned long long total, free, used; /* bytes */
};

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

/* Opens and initializes the library beside the driver's, or by its name: false without one. */
bool nvml_open(const char *driver_path, struct nvml *ret_nvml);

/* Accepts a library that was not opened, or is closed already. */
void nvml_close(struct nvml *nvml);
