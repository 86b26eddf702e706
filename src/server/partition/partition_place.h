/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the groups of a partition. */
#pragma once

#include "partition.h"

/* A range of groups. */
struct span {
    unsigned first, count;
};

/* Sets the groups of `partition`: whole cluster groups first. */
void partition_set_groups(const struct partitions *partitions, struct partition *partition,
                          const bool chosen[SM_GROUPS_MAX]);

/* Chooses `count` groups of the span with the fewest other users. The partition gets at least one
 * whole cluster group, if possible, and all free ones. Groups outside of free cluster groups come
 * next. With the lock of `partitions`. */
void partition_place_locked(const struct partitions *partitions, struct partition *partition,
                            struct span span, unsigned count);

/* The sum of the other users of its groups. With the lock of `partitions`. */
unsigned partition_load_locked(const struct partitions *partitions,
                               const struct partition *partition);

/* Whether all its groups are in the span. */
bool partition_lies_in(const struct partition *partition, struct span span);
