/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPUs of this server. Each has one context, the primary one, in which everything of every
 * client happens: only inside one context do kernels of several programs run side by side.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "attach.h"
#include "loader.h"

struct function;
struct fence_counters;

struct device {
    CUdevice ordinal;
    CUcontext context;
    CUstream watch; /* always idle: asking it tells whether the context still lives */
    struct function *fence_kernel;         /* NULL: there is none (fence_kernel.h) */
    struct fence_counters *fence_counters; /* the fence kernel's; NULL: it does without */
    CUstream shared_copy_stream;           /* shared_copy_stream.h; NULL: there is none */
    CUdeviceptr numbers;                   /* copy_fence.h; 0 = there is no table */
    struct device_record record;           /* what clients learn at attach */
    atomic_uint_fast64_t memory_free;      /* as of a second ago */
};

struct devices {
    struct device device[ATTACH_DEVICES_MAX];
    unsigned count;
    uint64_t stride; /* addresses that a client gets for each device */
    int driver_version;
    int table_fd; /* struct device_record[count], read-only */
};

/* Makes a context on every device: 0, or -errno and a sentence in `why`. */
int devices_init(struct devices *devices, char *why, size_t why_size);

void devices_fini(struct devices *devices);

/* Makes the device's context the calling thread's own. */
CUresult device_enter(const struct device *device);
