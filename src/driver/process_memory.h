/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much memory of a device this process has taken, its contexts among it, as NVIDIA's management
 * library (NVML) counts it and nvidia-smi shows it. What is free on a device tells less: other
 * programs take and give back memory at the same time. One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Opens the management library that lies beside the driver's, or another one by name. Where there
 * is none the process does without. */
void process_memory_open(const char *driver_path);

/* Bytes of the device with this PCI bus id, of sysfs's form; false where nobody counts them, as in
 * some containers. */
bool process_memory_read(const char *pci_bus_id, uint64_t *ret_bytes);

void process_memory_close(void);
