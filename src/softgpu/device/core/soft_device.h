/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The virtual devices, as FUNNEL_SOFT_DEVICES describes them: "2:sms=16,mem=4G" are two of them.
 */
#pragma once

#include <stdint.h>

#include "cuda_abi.h"
#include "exec.h"

#define SOFT_DRIVER_VERSION 13000
#define SOFT_MAX_DEVICES 16
#define SOFT_SM_VERSION 90

/* The residency model: what one SM holds at once. */
#define SOFT_WARP_SIZE 32
#define SOFT_THREADS_PER_SM 2048
#define SOFT_BLOCKS_PER_SM 32
#define SOFT_SHARED_PER_SM (228 << 10)
#define SOFT_SHARED_PER_BLOCK (48 << 10)
#define SOFT_SHARED_PER_BLOCK_OPTIN (227 << 10)
#define SOFT_SHARED_RESERVED (1 << 10)
#define SOFT_REGISTERS_PER_SM 65536
#define SOFT_THREADS_PER_BLOCK 1024
#define SOFT_CLUSTER_PORTABLE 8

struct context;

struct device {
    CUdevice ordinal;
    unsigned number; /* among all devices, before CUDA_VISIBLE_DEVICES */
    unsigned sm_count;
    uint64_t memory_size;
    uint64_t memory_used;
    CUresult lost; /* the fault after which the process cannot use the device any more */
    CUuuid uuid;
    struct sg_engine *engine; /* made by the first context */
    struct context *primary;
};

CUresult devices_init_locked(void);
unsigned devices_count(void);
struct device *device_get(CUdevice ordinal); /* NULL when there is no such device */
int device_attribute(const struct device *device, CUdevice_attribute attribute);
/* Whether host and kernels take turns with managed memory: FUNNEL_SOFT_MANAGED_TURNS. */
bool managed_takes_turns(void);
struct sg_engine *device_engine_locked(struct device *device);
void device_uuid_text(const struct device *device, char *text, size_t size);

/* Takes bytes of the device's memory: false when there are not so many left. */
bool device_charge_locked(struct device *device, uint64_t size);
void device_refund_locked(struct device *device, uint64_t size);
