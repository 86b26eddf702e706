/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of NVML that Funnel answers (enum nvml_result), by the signatures of NVIDIA's
 * headers. */
#pragma once

#include "nvml_abi.h"

#pragma GCC visibility push(default)

/* NVML_FUNNEL_SIGN. */
extern const int funnelNvml;

int nvmlDeviceGetComputeRunningProcesses(nvml_device device, unsigned *count, void *processes);
int nvmlDeviceGetComputeRunningProcesses_v2(nvml_device device, unsigned *count, void *processes);
int nvmlDeviceGetComputeRunningProcesses_v3(nvml_device device, unsigned *count, void *processes);
int nvmlDeviceGetGraphicsRunningProcesses(nvml_device device, unsigned *count, void *processes);
int nvmlDeviceGetGraphicsRunningProcesses_v2(nvml_device device, unsigned *count, void *processes);
int nvmlDeviceGetGraphicsRunningProcesses_v3(nvml_device device, unsigned *count, void *processes);
int nvmlDeviceGetMPSComputeRunningProcesses(nvml_device device, unsigned *count, void *processes);
int nvmlDeviceGetMPSComputeRunningProcesses_v2(nvml_device device, unsigned *count,
                                               void *processes);
int nvmlDeviceGetMPSComputeRunningProcesses_v3(nvml_device device, unsigned *count,
                                               void *processes);
int nvmlDeviceGetRunningProcessDetailList(nvml_device device, struct nvml_process_details *list);

int nvmlDeviceGetProcessUtilization(nvml_device device, struct nvml_process_sample *samples,
                                    unsigned *count, unsigned long long after);
int nvmlDeviceGetProcessesUtilizationInfo(nvml_device device, struct nvml_process_uses *uses);
int nvmlSystemGetProcessName(unsigned pid, char *name, unsigned length);

int nvmlDeviceGetAccountingMode(nvml_device device, int *mode);
int nvmlDeviceGetAccountingPids(nvml_device device, unsigned *count, unsigned *pids);
int nvmlDeviceGetAccountingStats(nvml_device device, unsigned pid, struct nvml_accounting *stats);

int nvmlDeviceGetMemoryInfo(nvml_device device, struct nvml_memory *memory);
int nvmlDeviceGetMemoryInfo_v2(nvml_device device, struct nvml_memory_v2 *memory);

int nvmlInternalGetExportTable(const void **ret_table, const void *id);

/* Passed on, and called by Funnel's own. */
int nvmlDeviceGetUUID(nvml_device device, char *uuid, unsigned length);
int nvmlSystemGetDriverVersion(char *version, unsigned length);

#pragma GCC visibility pop
