/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Partitions: a client that may use only some of the multiprocessors gets its streams from a green
 * context that has just those. Making one waits for the GPU to be idle and holds everybody up, so a
 * partition is kept and used again by the next client of the same share.
 */
#pragma once

#include <pthread.h>
#include <stdint.h>

#include "device.h"
#include "list.h"

#define PARTITION_GROUPS_MAX 256u

struct partition {
    struct list link;
    const struct device *device;
    CUgreenCtx green;
    unsigned sm_count;
    unsigned first_group, group_count; /* which part of the device, in groups, around the end */
};

/* The parts of one device. */
struct partitions {
    pthread_mutex_t lock;
    const struct device *device;
    CUdevResource groups[PARTITION_GROUPS_MAX];
    unsigned group_count; /* 0 = this driver can not divide the device */
    unsigned group_sms;
    unsigned users[PARTITION_GROUPS_MAX]; /* clients that a group serves now */
    struct list idle;
};

void partitions_init(struct partitions *partitions, const struct device *device);

/* How many multiprocessors a share of so many hundredths of a percent is, as NVIDIA's MPS rounds
 * it; all of them where the device can not be divided. */
unsigned partitions_grant(const struct partitions *partitions, uint32_t centipercent);

/* What a context gets that asks for so many. */
unsigned partitions_round_up(const struct partitions *partitions, unsigned sm_count);

/* A part of that size, where the fewest others are: CUDA_SUCCESS, or what the driver said. */
CUresult partitions_take(struct partitions *partitions, unsigned sm_count,
                         struct partition **ret_partition);

/* Just that part. CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION when the device has no such part. */
CUresult partitions_take_fixed(struct partitions *partitions, unsigned first_sm, unsigned sm_count,
                               struct partition **ret_partition);

/* Its client is gone. NULL is allowed. */
void partitions_put_back(struct partitions *partitions, struct partition *partition);
