/* SPDX-License-Identifier: Apache-2.0 */
/* A management library with two devices. This process has memory on the first; the library does not
 * count its memory on the second, which tells no more than a temperature. FAKE_NVML says how it
 * behaves: "nonsense" gives values of the first device that cannot be, and "broken" has no device.
 * With "dead" it does not start, and "hang" never returns the second device's temperature. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ERROR_NOT_SUPPORTED 3
#define ERROR_NOT_FOUND 6
#define ERROR_INSUFFICIENT_SIZE 7
#define ERROR_DRIVER_NOT_LOADED 9

struct process {
    unsigned pid;
    unsigned long long used_memory;
    unsigned gpu_instance, compute_instance;
};
struct utilization {
    unsigned gpu, memory;
};
struct memory {
    unsigned long long total, free, used;
};

#pragma GCC visibility push(default)
int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci_bus_id, void **ret_device);
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
                                            struct process *processes);
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius);
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts);
int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *milliwatts);
int nvmlDeviceGetUtilizationRates(void *device, struct utilization *utilization);
int nvmlDeviceGetClockInfo(void *device, int kind, unsigned *megahertz);
int nvmlDeviceGetMemoryInfo(void *device, struct memory *memory);
#pragma GCC visibility pop

static int opened;

static int behaves(const char *how)
{
    const char *wanted = getenv("FAKE_NVML");

    return wanted && !strcmp(wanted, how);
}

static int is_first(void *device)
{
    return !strcmp(*(const char **)device, "0000:01:00.0");
}

int nvmlInit_v2(void)
{
    if (behaves("dead"))
        return ERROR_DRIVER_NOT_LOADED;
    opened++;
    return 0;
}

int nvmlShutdown(void)
{
    opened--;
    return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *pci_bus_id, void **ret_device)
{
    static const char *const devices[] = {"0000:01:00.0", "0000:02:00.0"};

    for (size_t i = 0; opened > 0 && i < 2 && !behaves("broken"); i++) {
        *ret_device = (void *)&devices[i];
        if (!strcmp(pci_bus_id, devices[i]))
            return 0;
    }
    return ERROR_NOT_FOUND;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
                                            struct process *processes)
{
    unsigned long long own = is_first(device) ? 524ull << 20 : ~0ull;

    if (*count < 2)
        return ERROR_INSUFFICIENT_SIZE;
    *count = 2;
    processes[0] = (struct process){.pid = 1, .used_memory = 99};
    processes[1] = (struct process){.pid = (unsigned)getpid(), .used_memory = own};
    return 0;
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius)
{
    while (behaves("hang") && !is_first(device))
        pause();
    *celsius = !is_first(device) || sensor ? 30 : behaves("nonsense") ? ~0u : 51;
    return 0;
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts)
{
    *milliwatts = behaves("nonsense") ? ~0u : 320500;
    return is_first(device) ? 0 : ERROR_NOT_SUPPORTED;
}

int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *milliwatts)
{
    *milliwatts = behaves("nonsense") ? ~0u - 1 : 700000;
    return is_first(device) ? 0 : ERROR_NOT_SUPPORTED;
}

int nvmlDeviceGetUtilizationRates(void *device, struct utilization *utilization)
{
    *utilization =
        behaves("nonsense") ? (struct utilization){101, 4000000000u} : (struct utilization){87, 12};
    return is_first(device) ? 0 : ERROR_NOT_SUPPORTED;
}

int nvmlDeviceGetClockInfo(void *device, int kind, unsigned *megahertz)
{
    *megahertz = behaves("nonsense") ? 4000000000u : kind == 1 ? 1980 : 2619;
    return is_first(device) ? 0 : ERROR_NOT_SUPPORTED;
}

int nvmlDeviceGetMemoryInfo(void *device, struct memory *memory)
{
    *memory = (struct memory){80ull << 30, 64ull << 30, 16ull << 30};
    if (behaves("nonsense"))
        memory->used = memory->total + 1;
    return is_first(device) ? 0 : ERROR_NOT_SUPPORTED;
}
