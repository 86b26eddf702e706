/* SPDX-License-Identifier: Apache-2.0 */
/* Which groups a partition consists of. */
#pragma once

#include "partition.h"

/* A range of groups. */
struct span {
    unsigned first, count;
};

/* Makes `partition` consist of these groups: whole cluster groups first. */
void partition_set_groups(const struct partitions *partitions, struct partition *partition,
                          const bool chosen[SM_GROUPS_MAX]);

/* Makes it consist of `count` groups of the span, which has so many, with as few other users as can
 * be. It has a whole cluster group where it can have one, and as many as are free; groups that are
 * in no free cluster group come next. With the lock of `partitions`. */
void partition_place_locked(const struct partitions *partitions, struct partition *partition,
                            struct span span, unsigned count);

/* How many other users its groups have, all together. With the lock of `partitions`. */
unsigned partition_load_locked(const struct partitions *partitions,
                               const struct partition *partition);

/* Whether all its groups are in the span. */
bool partition_lies_in(const struct partition *partition, struct span span);
