/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Partitions: a client that may use only some of the multiprocessors gets its streams from a green
 * context that has just those. Making one waits for the GPU to be idle and holds everybody up, and
 * each takes some 10 MiB of the device. So some are kept for the next clients with the same share,
 * and once a share is known, more of that size are made while nobody is at work.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "device.h"
#include "list.h"

#define PARTITION_GROUPS_MAX 256u

/* Those without a client: how many are kept, and up to how many are made ahead, of which sizes. */
#define PARTITIONS_IDLE_MAX 16u
#define PARTITION_SPARES_MAX 8u
#define PARTITION_SIZES 4u

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
    unsigned sizes[PARTITION_SIZES];      /* taken lately, the newest first; 0 = none */
    struct list idle;                     /* the one that was used last comes last */
    unsigned idle_count;
    bool settled; /* no spare one is wanted */
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

/* The same within a part of the device. CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION when the device
 * has no such part. */
CUresult partitions_take_within(struct partitions *partitions, unsigned first_sm, unsigned part_sms,
                                unsigned sm_count, struct partition **ret_partition);

/* Its client is gone. NULL is allowed. */
void partitions_put_back(struct partitions *partitions, struct partition *partition);

/* Whether the next may do something: cheap. */
bool partitions_want_spare(struct partitions *partitions);

/* Nobody is at work: one more of a size that is in use, beside the others, if there is room for
 * one. False when there is nothing to do. */
bool partitions_make_spare(struct partitions *partitions);

/* There are no clients: nothing is kept. */
void partitions_trim(struct partitions *partitions);
