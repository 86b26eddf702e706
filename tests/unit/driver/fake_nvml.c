/* SPDX-License-Identifier: Apache-2.0 */
/* A management library with two devices. This process has memory on the first; the library does not
 * count its memory on the second. */
#include <stddef.h>
#include <string.h>
#include <unistd.h>

struct process {
    unsigned pid;
    unsigned long long used_memory;
    unsigned gpu_instance, compute_instance;
};

#pragma GCC visibility push(default)
int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci_bus_id, void **ret_device);
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
                                            struct process *processes);
#pragma GCC visibility pop

static int opened;

int nvmlInit_v2(void)
{
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

    for (size_t i = 0; opened == 1 && i < 2; i++) {
        *ret_device = (void *)&devices[i];
        if (!strcmp(pci_bus_id, devices[i]))
            return 0;
    }
    return 6;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
                                            struct process *processes)
{
    unsigned long long own = !strcmp(*(const char **)device, "0000:01:00.0") ? 524ull << 20 : ~0ull;

    if (*count < 2)
        return 7;
    *count = 2;
    processes[0] = (struct process){.pid = 1, .used_memory = 99};
    processes[1] = (struct process){.pid = (unsigned)getpid(), .used_memory = own};
    return 0;
}
