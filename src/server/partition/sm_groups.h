/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Divides a device into the driver's smallest groups of multiprocessors and, where the device
 * launches clusters, into cluster groups. A cluster runs inside one cluster group. A partition
 * needs the whole cluster group as one resource of the driver; in the smallest groups only clusters
 * of two run.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "device.h"

#define SM_GROUPS_MAX 256u

struct sm_groups {
    CUdevResource group[SM_GROUPS_MAX]; /* those of cluster groups come first, in their order */
    CUdevResource cluster_group[SM_GROUPS_MAX];
    unsigned count;            /* of groups; 0 = this driver cannot divide the device */
    unsigned sms;              /* that each group has */
    unsigned cluster_count;    /* of cluster groups */
    unsigned cluster_size;     /* of a cluster group, in groups */
    unsigned least, scheduled; /* the smallest part with co-scheduling, and its step */
    atomic_bool is_ordered;    /* groups in cluster groups come first */
};

/* Measures the positions of the groups, and sorts them, before the first partition is made. One
 * thread at a time; the calls on the device may wait for kernels. */
void sm_groups_order(struct sm_groups *groups, const struct device *device);

/* Divides the device. Before any other thread uses it. */
void sm_groups_init(struct sm_groups *groups, const struct device *device);

/* The number of groups in cluster groups. */
static inline unsigned sm_groups_clustered(const struct sm_groups *groups)
{
    return groups->cluster_count * groups->cluster_size;
}
