/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Partitions: a client with a limit of multiprocessors gets its streams from a green context with
 * that many. The creation of a green context waits for an idle GPU, which blocks every client, and
 * takes some 10 MiB of device memory. So partitions are kept for later clients with the same share,
 * and more of a known size are created while no client is busy.
 *
 * Functions may be called from any thread. Those that create a partition need the device's context.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "device.h"
#include "list.h"
#include "sm_groups.h"

/* Idle partitions: the most that are kept, the most that are created in advance, and the number of
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

/* Groups of a device: bit g % 64 of word g / 64 is group g. */
struct group_set {
    uint64_t words[SM_GROUPS_MAX / 64];
};

/* The groups of a partition; NULL is the whole device. */
struct group_set partition_group_set(const struct partition *partition);

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

/* The multiprocessors of a percentage, in hundredths, rounded as in NVIDIA's MPS; all of them when
 * the device cannot be divided. */
unsigned partitions_grant(const struct partitions *partitions, uint32_t centipercent);

/* The multiprocessors that a context gets for a request of `sm_count`. */
unsigned partitions_round_up(const struct partitions *partitions, unsigned sm_count);

/* Takes a partition of that size, on the groups with the fewest users (partition_place.h). On the
 * session's thread. If necessary it creates one at an idle point (exclusive.h).
 * CUDA_ERROR_OUT_OF_MEMORY, or the driver's result. */
CUresult partitions_take(struct partitions *partitions, struct session *session, unsigned sm_count,
                         struct partition **ret_partition);

/* The same within a range of multiprocessors. CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION when the
 * device has no such range. */
CUresult partitions_take_within(struct partitions *partitions, struct session *session,
                                unsigned first_sm, unsigned part_sms, unsigned sm_count,
                                struct partition **ret_partition);

/* Takes `count` groups, by number, of the range of `within`; NULL is the whole device. Numbers
 * beyond the range wrap around. */
CUresult partitions_take_groups(struct partitions *partitions, struct session *session,
                                const struct partition *within, const uint8_t *groups,
                                unsigned count, struct partition **ret_partition);

/* The number of groups in that range. */
unsigned partitions_count_groups(const struct partitions *partitions,
                                 const struct partition *within);

/* The number of them that come first, as whole cluster groups. */
unsigned partitions_count_clustered(const struct partitions *partitions,
                                    const struct partition *within);

/* The number of multiprocessors of the device in cluster groups. */
unsigned partitions_clustered_sms(const struct partitions *partitions);

/* The client of the partition is gone. NULL is allowed. */
void partitions_put_back(struct partitions *partitions, struct partition *partition);

/* Whether partitions_make_spare() may do something. This is cheap. */
bool partitions_want_spare(struct partitions *partitions);

/* No client is busy: creates one more partition of a known size on free groups. False when there is
 * nothing to do. */
bool partitions_make_spare(struct partitions *partitions);

/* There are no clients: destroys all idle partitions. */
void partitions_trim(struct partitions *partitions);
