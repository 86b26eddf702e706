/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device memory of this process, including its contexts, as NVIDIA's management library (NVML)
 * counts it and nvidia-smi shows it. The free memory of a device tells less, because other programs
 * allocate and free at the same time. One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Opens the management library beside the driver's, or by its name. Without one,
 * process_memory_read() answers false. */
void process_memory_open(const char *driver_path);

/* Bytes on the device with this PCI bus id, in the form of sysfs; false where NVML does not count
 * them, as in some containers. */
bool process_memory_read(const char *pci_bus_id, uint64_t *ret_bytes);

void process_memory_close(void);
