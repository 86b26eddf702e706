/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Partitions: a client that may use only some of the multiprocessors gets its streams from a green
 * context that has just those. To create one waits for the GPU to be idle, which blocks every
 * client, and each takes some 10 MiB of the device. So some are kept for the next clients with the
 * same share, and once a size is known, more of it are created while no client is busy.
 *
 * Functions may be called from any thread, those that create one in the device's context.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "device.h"
#include "list.h"
#include "sm_groups.h"

/* Idle partitions: how many are kept, up to how many are created in advance, and of how many
 * sizes. */
#define PARTITIONS_IDLE_MAX 16u
#define PARTITION_SPARES_MAX 8u
#define PARTITION_SIZES 4u

struct session;

struct partition {
    struct list link;
    const struct device *device;
    CUgreenCtx green;
    unsigned sm_count;
    unsigned group_count;          /* of groups of the device, ... */
    unsigned clustered;            /* of which so many come first, as whole cluster groups */
    uint8_t groups[SM_GROUPS_MAX]; /* their numbers */
};

/* The partitions of one device. */
struct partitions {
    pthread_mutex_t lock;
    const struct device *device;
    struct sm_groups groups;
    unsigned users[SM_GROUPS_MAX];   /* how many clients a group serves now */
    unsigned sizes[PARTITION_SIZES]; /* taken last, the newest first; 0 = none */
    struct list idle;                /* the one that was used last comes last */
    unsigned idle_count;
    bool settled; /* no partition is wanted in advance */
};

/* Divides the device. Before any other thread uses it. */
void partitions_init(struct partitions *partitions, const struct device *device);

/* How many multiprocessors a percentage, in hundredths, stands for, as NVIDIA's MPS rounds it; all
 * of them where the device cannot be divided. */
unsigned partitions_grant(const struct partitions *partitions, uint32_t centipercent);

/* How many multiprocessors a context gets that asks for `sm_count`. */
unsigned partitions_round_up(const struct partitions *partitions, unsigned sm_count);

/* A partition of that size, where the fewest others are (partition_place.h), on the session's
 * thread. One that has to be created is, in a calm moment (calm.h). CUDA_ERROR_OUT_OF_MEMORY, or
 * what the driver says. */
CUresult partitions_take(struct partitions *partitions, struct session *session, unsigned sm_count,
                         struct partition **ret_partition);

/* The same within a range of multiprocessors. CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION when the
 * device has no such range. */
CUresult partitions_take_within(struct partitions *partitions, struct session *session,
                                unsigned first_sm, unsigned part_sms, unsigned sm_count,
                                struct partition **ret_partition);

/* Of `count` groups of the range that `within` is, by number; NULL is the whole device. Groups that
 * the range does not have count from its beginning again. */
CUresult partitions_take_groups(struct partitions *partitions, struct session *session,
                                const struct partition *within, const uint8_t *groups,
                                unsigned count, struct partition **ret_partition);

/* How many groups that range has. */
unsigned partitions_count_groups(const struct partitions *partitions,
                                 const struct partition *within);

/* How many of them come first as whole cluster groups. */
unsigned partitions_count_clustered(const struct partitions *partitions,
                                    const struct partition *within);

/* How many multiprocessors of the device lie in cluster groups. */
unsigned partitions_clustered_sms(const struct partitions *partitions);

/* The client of the partition is gone. NULL is allowed. */
void partitions_put_back(struct partitions *partitions, struct partition *partition);

/* Whether partitions_make_spare() may do something. This is cheap. */
bool partitions_want_spare(struct partitions *partitions);

/* No client is busy: creates one more partition of a size that is in use, beside the others, if
 * there is a free place. False when there is nothing to do. */
bool partitions_make_spare(struct partitions *partitions);

/* There are no clients: destroys all idle partitions. */
void partitions_trim(struct partitions *partitions);
