/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPUs of this server, and the context on each. Kernels of several programs overlap only inside
 * one context, so all clients work in the GPU's primary one.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attach.h"
#include "loader.h"

struct batch_pause;
struct capacity;
struct gate;
struct spare_events;

struct device {
    CUdevice ordinal;
    CUcontext context;
    CUstream watch;              /* always idle: a query of it tells whether the context lives */
    struct gate *gate;           /* these by exclusive_init(): gate.h, */
    struct spare_events *events; /* spare_events.h, */
    struct capacity *capacity;   /* capacity.h, */
    struct batch_pause *batch_pause; /* batch_pause.h */
    struct device_launch *launch;    /* The parts of subsystems, opaque to the others. */
    struct device_copies *copies;
    struct device_arrays *arrays;
    struct device_record record;      /* what clients learn at attach */
    atomic_uint_fast64_t memory_free; /* bytes, as of a second ago */
};

struct devices {
    struct device device[ATTACH_DEVICES_MAX]; /* by ordinal */
    unsigned count;
    uint64_t own_memory[ATTACH_DEVICES_MAX]; /* bytes that the process has taken; 0 = not known */
    uint64_t stride;                         /* addresses that a client gets for each device */
    int driver_version;
    int table_fd;      /* struct device_record[count], read-only */
    struct gate *gate; /* the locks of all contexts as one */
};

/* 10 * major + minor. */
static inline unsigned device_compute_capability(const struct device *device)
{
    const int32_t *attributes = device->record.attributes;

    return (unsigned)(10 * attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] +
                      attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR]);
}

/* Creates a context on every device, for the life of the process. Each new context is current when
 * `prepare` is called for it. With `measures` the process's own memory is asked for. 0, or -errno
 * and in `why` a message of what went wrong. */
typedef void prepare_context(void);
int devices_init(struct devices *devices, bool measures, prepare_context *prepare, char *why,
                 size_t why_size);

/* How the server has the driver make memory of the device: it can be exported, and network adapters
 * reach it where the device lets them. */
CUmemAllocationProp device_memory_properties(const struct device *device);

/* Maps memory of the driver at reserved addresses, and the device may then read and write it. The
 * second gives it that access to what is mapped. The context of any device is current. The driver's
 * result; after an error nothing is mapped by the first. */
CUresult device_map(const struct device *device, CUmemGenericAllocationHandle memory,
                    uint64_t address, uint64_t size);
CUresult device_grant(const struct device *device, uint64_t address, uint64_t size);

/* Makes the device's context the current one of the calling thread. What the driver says. */
CUresult device_enter(const struct device *device);
