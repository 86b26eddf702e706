/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPUs of this server. Each has one context, the primary one, in which everything of every
 * client happens, because kernels of several programs overlap only inside one context.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "attach.h"
#include "loader.h"

struct quiesce;
struct spare_events;

struct device {
    CUdevice ordinal;
    CUcontext context;
    CUstream watch;               /* always idle: a query of it tells whether the context lives */
    struct quiesce *quiesce;      /* the one of all devices: quiesce.h */
    struct spare_events *events;  /* spare_events.h */
    struct device_launch *launch; /* The parts of subsystems, opaque to the others. */
    struct device_copies *copies;
    struct device_arrays *arrays;
    struct device_record record;      /* what clients learn at attach */
    atomic_uint_fast64_t memory_free; /* bytes, as of a second ago */
};

struct devices {
    struct device device[ATTACH_DEVICES_MAX];
    unsigned count;
    uint64_t stride; /* addresses that a client gets for each device */
    int driver_version;
    int table_fd; /* struct device_record[count], read-only */
    struct quiesce *quiesce;
};

/* Creates a context on every device, for the life of the process. 0, or -errno and in `why` a
 * message of what went wrong. */
int devices_init(struct devices *devices, char *why, size_t why_size);

/* Creates the quiesce lock, and for each device its spare events: 0 or -ENOMEM. devices_init()
 * calls it; the second undoes it. */
int devices_create_pools(struct devices *devices);
void devices_destroy_pools(struct devices *devices);

/* Makes the device's context the current one of the calling thread. What the driver says. */
CUresult device_enter(const struct device *device);
