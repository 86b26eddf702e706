/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPUs of this server, and the contexts on them. A GPU has its primary context, and kernels of
 * several programs overlap only inside one context, so that is where clients work. On request it
 * has a second, spare one. A call that waits for all kernels of a context does not wait for those
 * of the other. So a client that would wait for long kernels of others works in the other one
 * (placement.h). Each context is a struct device with the same ordinal as the GPU.
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
    unsigned index; /* in struct devices */
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

#define DEVICE_CONTEXTS_MAX (2 * ATTACH_DEVICES_MAX)

struct devices {
    struct device
        device[DEVICE_CONTEXTS_MAX]; /* by ordinal; spare contexts follow, in that order */
    unsigned count;                  /* of GPUs */
    bool has_spares;                 /* each has a spare context */
    uint64_t spare_memory[ATTACH_DEVICES_MAX]; /* bytes that the spare context has taken */
    uint64_t own_memory[ATTACH_DEVICES_MAX];   /* bytes that both have, about */
    uint64_t stride;                           /* addresses that a client gets for each device */
    int driver_version;
    int table_fd;      /* struct device_record[count], read-only */
    struct gate *gate; /* the locks of all contexts as one */
};

/* How many contexts there are. */
static inline unsigned devices_context_count(const struct devices *devices)
{
    return devices->has_spares ? 2 * devices->count : devices->count;
}

/* 10 * major + minor. */
static inline unsigned device_compute_capability(const struct device *device)
{
    const int32_t *attributes = device->record.attributes;

    return (unsigned)(10 * attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] +
                      attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR]);
}

/* Creates a context on every device, for the life of the process, and with `spares` a second one.
 * A device that has no memory for that makes the server work without spare contexts. Each new
 * context is current when `prepare` is called for it. 0, or -errno and in `why` a message of what
 * went wrong. */
typedef void prepare_context(void);
int devices_init(struct devices *devices, bool spares, prepare_context *prepare, char *why,
                 size_t why_size);

/* How the server has the driver make memory of the device: it can be exported, and network adapters
 * reach it where the device lets them. */
CUmemAllocationProp device_memory_properties(const struct device *device);

/* Makes the device's context the current one of the calling thread. What the driver says. */
CUresult device_enter(const struct device *device);
