/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Power, temperature and clocks of the devices, which NVIDIA's management library (NVML) tells. A
 * thread of its own asks every few seconds, so that a library that hangs delays no other thread.
 * Values that grow old become unknown.
 */
#pragma once

#include <stdint.h>

#include "sensors.h"

struct sensor_watch;

/* Starts to ask for the devices with these PCI bus ids, which the watch copies. The driver's path
 * says where the library is. NULL without memory or a thread. The watch lasts as long as the
 * process. */
struct sensor_watch *sensor_watch_start(const char *driver_path, const char *const *pci_bus_ids,
                                        unsigned count);

/* From any thread, and without a wait for the library: the newest values of a device, as of
 * clock_ns() `now`. `watch` may be NULL. */
void sensor_watch_get(struct sensor_watch *watch, unsigned device, uint64_t now,
                      struct server_sensors *ret_sensors);
