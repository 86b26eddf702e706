/* SPDX-License-Identifier: Apache-2.0 */
/* The devices that this process sees, in its own order (CUDA_VISIBLE_DEVICES). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "attach.h"
#include "cuda_abi.h"

struct context;

/* What the server said of a device when the process attached. Only the index changes afterwards.
 * What other subsystems keep for each device, they keep themselves, under its ordinal. */
struct device {
    int ordinal;    /* the process's number */
    uint32_t index; /* the server's number; changes when the client moves to another device */
    uint32_t part;  /* of the window, where its memory is; it has been the server's number */
    const struct device_record *record;
    struct context *primary;
};

/* The device of that ordinal, NULL when there is none. Takes no lock, as all of these. */
struct device *device_lookup(CUdevice ordinal);

/* The same by the server's number, and by the part of the window. */
struct device *device_with_index(uint64_t index);
struct device *device_with_part(uint64_t part);

/* The server's number of the device with that part. */
uint32_t device_index_of(uint32_t part);

/* No other thread is inside: what has been on one of the server's devices is on the other from now
 * on. The record stays that of the device that the program has been told of. */
void devices_exchange(uint32_t one, uint32_t other);

/* The value of an attribute as programs are told it; 0 when the server does not know it. */
int device_attribute(const struct device *device, CUdevice_attribute attribute);

/* Whether the server's driver knows the attribute: it may be older than the list of them. */
bool device_has_attribute(const struct device *device, CUdevice_attribute attribute);

/* 90 = compute capability 9.0. */
unsigned device_compute_capability(const struct device *device);
