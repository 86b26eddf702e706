/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a device is divided: into the smallest groups of multiprocessors that the driver makes, and,
 * where the device launches clusters, into cluster groups. A cluster runs inside one cluster group,
 * of which a partition needs the whole, as one resource of the driver's; in the smallest groups
 * alone, even side by side, only clusters of two run.
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
    unsigned least, scheduled; /* the smallest part with co-scheduling, and its multiples */
    atomic_bool is_ordered;    /* those of cluster groups do come first */
};

/* Measures where the groups lie, and orders them, before the first partition is made. One thread at
 * a time; the calls on the device may wait for kernels. */
void sm_groups_order(struct sm_groups *groups, const struct device *device);

/* Divides the device. Before any other thread uses it. */
void sm_groups_init(struct sm_groups *groups, const struct device *device);

/* How many groups lie in cluster groups. */
static inline unsigned sm_groups_clustered(const struct sm_groups *groups)
{
    return groups->cluster_count * groups->cluster_size;
}
