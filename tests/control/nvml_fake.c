/* SPDX-License-Identifier: Apache-2.0 */
/* In the place of NVIDIA's NVML: one device, whose UUID and compute processes the environment
 * names (FAKE_NVML_UUID, FAKE_NVML_PIDS), and which has a temperature. The driver has the version
 * FAKE_NVML_DRIVER, and the table by which nvidia-smi lists processes. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EACH_USES (100ull << 20)
#define INSUFFICIENT_SIZE 7
#define NOT_FOUND 6

struct process {
    unsigned pid;
    uint64_t used_memory;
    unsigned gpu_instance, compute_instance;
};

struct sample {
    unsigned pid;
    uint64_t time;
    unsigned use[4];
};

#pragma GCC visibility push(default)
int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **ret_device);
int nvmlDeviceGetUUID(void *device, char *uuid, unsigned size);
int nvmlDeviceGetTemperature(void *device, unsigned sensor, unsigned *ret_degrees);
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct process *list);
int nvmlDeviceGetGraphicsRunningProcesses_v3(void *device, unsigned *count, struct process *list);
int nvmlDeviceGetProcessUtilization(void *device, struct sample *samples, unsigned *count,
                                    uint64_t after);
int nvmlSystemGetProcessName(unsigned pid, char *name, unsigned size);
int nvmlSystemGetDriverVersion(char *version, unsigned size);
int nvmlInternalGetExportTable(const void **ret_table, const unsigned char id[16]);
int nvmlDeviceGetNvLinkUtilizationCounter(void *device, unsigned link, unsigned counter,
                                          uint64_t *received, uint64_t *sent);
#pragma GCC visibility pop

static char device_place;

int nvmlInit_v2(void)
{
    return 0;
}

int nvmlShutdown(void)
{
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **ret_device)
{
    *ret_device = &device_place;
    return index ? 2 : 0;
}

int nvmlDeviceGetUUID(void *device, char *uuid, unsigned size)
{
    return device == &device_place && snprintf(uuid, size, "%s", getenv("FAKE_NVML_UUID")) > 0 ? 0
                                                                                               : 2;
}

int nvmlDeviceGetTemperature(void *device, unsigned sensor, unsigned *ret_degrees)
{
    *ret_degrees = 40 + sensor;
    return device == &device_place ? 0 : 2;
}

static unsigned listed_pids(unsigned pids[16])
{
    unsigned count = 0;

    for (char *at = getenv("FAKE_NVML_PIDS"); at && *at && count < 16; at += *at == ',')
        pids[count++] = (unsigned)strtoul(at, &at, 10);
    return count;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct process *list)
{
    unsigned pids[16], known = listed_pids(pids), fits = *count;

    *count = known;
    for (unsigned i = 0; i < known && known <= fits; i++)
        list[i] = (struct process){pids[i], EACH_USES, ~0u, ~0u};
    return known <= fits ? 0 : INSUFFICIENT_SIZE;
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(void *device, unsigned *count, struct process *list)
{
    return nvmlDeviceGetComputeRunningProcesses_v3(device, count, list);
}

int nvmlDeviceGetProcessUtilization(void *device, struct sample *samples, unsigned *count,
                                    uint64_t after)
{
    unsigned pids[16], known = listed_pids(pids), fits = *count;

    if (after > 1000)
        return NOT_FOUND;
    *count = known;
    for (unsigned i = 0; i < known && samples && known <= fits; i++)
        samples[i] = (struct sample){pids[i], 1000, {99, 1, 2, 3}};
    return samples && known <= fits ? 0 : INSUFFICIENT_SIZE;
}

int nvmlSystemGetProcessName(unsigned pid, char *name, unsigned size)
{
    return NOT_FOUND;
}

int nvmlSystemGetDriverVersion(char *version, unsigned size)
{
    const char *given = getenv("FAKE_NVML_DRIVER");

    return snprintf(version, size, "%s", given ? given : "1.0") > 0 ? 0 : NOT_FOUND;
}

/* ---- what nvidia-smi asks ---- */

struct table_process {
    struct process process;
    uint64_t protected_memory;
    char name[4096];
};

static int list_compute(void *device, unsigned *count, struct table_process *list)
{
    unsigned pids[16], known = listed_pids(pids);

    *count = known;
    for (unsigned i = 0; i < known; i++)
        list[i] = (struct table_process){{pids[i], EACH_USES, ~0u, ~0u}, 0, "a program"};
    return device == &device_place ? 0 : NOT_FOUND;
}

static int list_nothing(void *device, unsigned *count, struct table_process *list)
{
    *count = 0;
    return 0;
}

static int answer_seven(void)
{
    return 7;
}

int nvmlInternalGetExportTable(const void **ret_table, const unsigned char id[16])
{
    static const void *table[256];

    if (id[0] != 0xc4)
        return NOT_FOUND;
    table[0] = (const void *)sizeof(table);
    table[1] = (const void *)answer_seven;
    table[213] = (const void *)list_compute;
    table[214] = table[215] = (const void *)list_nothing;
    *ret_table = table;
    return 0;
}

int nvmlDeviceGetNvLinkUtilizationCounter(void *device, unsigned link, unsigned counter,
                                          uint64_t *received, uint64_t *sent)
{
    *received = link;
    *sent = counter;
    return device == &device_place ? 0 : 2;
}
