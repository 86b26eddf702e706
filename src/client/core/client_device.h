/* SPDX-License-Identifier: Apache-2.0 */
/* The devices that this process sees, in its own order (CUDA_VISIBLE_DEVICES). */
#pragma once

#include <stdint.h>

#include "attach.h"
#include "cuda_abi.h"

struct context;

/* What the server said of a device when the process attached. It does not change afterwards. What
 * other subsystems keep for each device, they keep themselves, under its ordinal. */
struct device {
    int ordinal;    /* the process's number */
    uint32_t index; /* the server's number */
    const struct device_record *record;
    struct context *primary;
};

/* The device of that ordinal, NULL when there is none. Takes no lock, as all of these. */
struct device *device_lookup(CUdevice ordinal);

/* The same by the server's number. */
struct device *device_with_index(uint64_t index);

/* The value of an attribute as programs are told it; 0 when the server does not know it. */
int device_attribute(const struct device *device, CUdevice_attribute attribute);

/* 90 = compute capability 9.0. */
unsigned device_compute_capability(const struct device *device);
