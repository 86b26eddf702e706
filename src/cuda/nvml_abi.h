/* SPDX-License-Identifier: Apache-2.0 */
/* Our own declarations of what NVML's functions return and take. Layouts are those of x86-64 and
 * AArch64 Linux; times are microseconds since the epoch, memory is bytes. */
#pragma once

#include <stdint.h>

enum nvml_result {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NO_PERMISSION = 4,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_DRIVER_NOT_LOADED = 9,
    NVML_ERROR_FUNCTION_NOT_FOUND = 13,
    NVML_ERROR_MEMORY = 20,
    NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
    NVML_ERROR_UNKNOWN = 999,
};

/* Of no MIG instance; and a number that the driver does not know. */
#define NVML_NO_INSTANCE UINT32_MAX
#define NVML_MEMORY_UNKNOWN UINT64_MAX

#define NVML_UUID_MAX 96
#define NVML_VERSION_MAX 80

/* The symbol by which Funnel's own library is told from NVIDIA's. */
#define NVML_FUNNEL_SIGN "funnelNvml"

/* The first member of structures that have versions. */
#define NVML_VERSION(type, number) ((uint32_t)sizeof(type) | (uint32_t)(number) << 24)

typedef struct nvml_device_st *nvml_device;

struct nvml_process_v1 {
    uint32_t pid;
    uint64_t used_memory;
};

/* Of the second and third version of the calls. */
struct nvml_process {
    uint32_t pid;
    uint64_t used_memory;
    uint32_t gpu_instance, compute_instance;
};

struct nvml_process_detail {
    uint32_t pid;
    uint64_t used_memory;
    uint32_t gpu_instance, compute_instance;
    uint64_t protected_memory;
};

enum nvml_process_mode {
    NVML_PROCESS_COMPUTE,
    NVML_PROCESS_GRAPHICS,
    NVML_PROCESS_MPS,
    NVML_PROCESS_ALL,
};

struct nvml_process_details {
    uint32_t version;
    uint32_t mode; /* enum nvml_process_mode */
    uint32_t count;
    struct nvml_process_detail *processes;
};

/* Percent. */
struct nvml_process_sample {
    uint32_t pid;
    uint64_t time;
    uint32_t sm, memory, encoder, decoder;
};

struct nvml_process_use {
    uint64_t time;
    uint32_t pid;
    uint32_t sm, memory, encoder, decoder, jpeg, optical_flow;
};

struct nvml_process_uses {
    uint32_t version;
    uint32_t count;
    uint64_t after; /* only samples later than this */
    struct nvml_process_use *uses;
};

struct nvml_accounting {
    uint32_t gpu_percent, memory_percent;
    uint64_t memory_peak;
    uint64_t ms; /* 0 while the process runs */
    uint64_t started;
    uint32_t is_running;
    uint32_t reserved[5];
};

struct nvml_utilization {
    uint32_t gpu, memory; /* percent */
};

struct nvml_memory {
    uint64_t total, free, used;
};

struct nvml_memory_v2 {
    uint32_t version;
    uint64_t total, reserved, free, used;
};

struct nvml_pci {
    char legacy_bus_id[16]; /* "0000:01:00.0" */
    uint32_t domain, bus, device;
    uint32_t device_id;    /* and vendor */
    uint32_t subsystem_id; /* since the second version of the call */
    char bus_id[32];       /* "00000000:01:00.0" */
};
