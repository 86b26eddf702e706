/* SPDX-License-Identifier: Apache-2.0 */
/* See partition_place.h. */
#include "partition_place.h"

#include <limits.h>

struct choice {
    const struct partitions *partitions;
    struct span span;
    bool chosen[SM_GROUPS_MAX];
    unsigned missing; /* groups that are still to be chosen */
};

/* ---- cluster groups ---- */

/* Whether the group is in a cluster group that has been chosen as a whole. */
static bool lies_in_whole_cluster_group(const struct sm_groups *groups,
                                        const bool chosen[SM_GROUPS_MAX], unsigned group)
{
    if (group >= sm_groups_clustered(groups))
        return false;
    unsigned first = group / groups->cluster_size * groups->cluster_size;
    bool whole = true;

    for (unsigned i = 0; i < groups->cluster_size; i++)
        whole &= chosen[first + i];
    return whole;
}

static void append_groups(const struct sm_groups *groups, struct partition *partition,
                          const bool chosen[SM_GROUPS_MAX], bool whole)
{
    for (unsigned i = 0; i < groups->count; i++)
        if (chosen[i] && lies_in_whole_cluster_group(groups, chosen, i) == whole)
            partition->groups[partition->group_count++] = (uint8_t)i;
}

void partition_set_groups(const struct partitions *partitions, struct partition *partition,
                          const bool chosen[SM_GROUPS_MAX])
{
    const struct sm_groups *groups = &partitions->groups;

    partition->group_count = 0;
    append_groups(groups, partition, chosen, true);
    partition->clustered = partition->group_count;
    append_groups(groups, partition, chosen, false);
    partition->sm_count = partition->group_count * groups->sms;
}

/* The users of a cluster group; UINT_MAX when one of its groups is outside of the span or already
 * chosen. */
static unsigned users_of_cluster_group(const struct choice *choice, unsigned cluster_group)
{
    unsigned size = choice->partitions->groups.cluster_size, first = cluster_group * size;
    unsigned users = 0;

    if (first < choice->span.first || first + size > choice->span.first + choice->span.count)
        return UINT_MAX;
    for (unsigned group = first; group < first + size; group++) {
        if (choice->chosen[group])
            return UINT_MAX;
        users += choice->partitions->users[group];
    }
    return users;
}

/* Chooses the cluster group with the fewest users, if it has no more than `most`. */
static bool choose_cluster_group(struct choice *choice, unsigned most)
{
    const struct sm_groups *groups = &choice->partitions->groups;
    unsigned best = groups->cluster_count, least = UINT_MAX;

    for (unsigned i = 0; i < groups->cluster_count; i++) {
        unsigned users = users_of_cluster_group(choice, i);
        if (users < least) {
            best = i;
            least = users;
        }
    }
    if (choice->missing < groups->cluster_size || least == UINT_MAX || least > most)
        return false;
    for (unsigned i = 0; i < groups->cluster_size; i++)
        choice->chosen[best * groups->cluster_size + i] = true;
    choice->missing -= groups->cluster_size;
    return true;
}

/* ---- single groups ---- */

static bool lies_in_free_cluster_group(const struct choice *choice, unsigned group)
{
    const struct sm_groups *groups = &choice->partitions->groups;

    return group < sm_groups_clustered(groups) &&
           users_of_cluster_group(choice, group / groups->cluster_size) == 0;
}

/* Groups with the fewest users first. Among equals, groups outside of free cluster groups first. */
static unsigned price_of(const struct choice *choice, unsigned group)
{
    return 2 * choice->partitions->users[group] + lies_in_free_cluster_group(choice, group);
}

static void choose_group(struct choice *choice)
{
    unsigned best = 0, least = UINT_MAX;

    for (unsigned group = choice->span.first; group < choice->span.first + choice->span.count;
         group++) {
        if (choice->chosen[group] || price_of(choice, group) >= least)
            continue;
        best = group;
        least = price_of(choice, group);
    }
    choice->chosen[best] = true;
    choice->missing--;
}

void partition_place_locked(const struct partitions *partitions, struct partition *partition,
                            struct span span, unsigned count)
{
    struct choice choice = {.partitions = partitions, .span = span, .missing = count};

    choose_cluster_group(&choice, UINT_MAX - 1);
    while (choose_cluster_group(&choice, 0))
        ;
    while (choice.missing > 0)
        choose_group(&choice);
    partition_set_groups(partitions, partition, choice.chosen);
}

/* ---- queries ---- */

unsigned partition_load_locked(const struct partitions *partitions,
                               const struct partition *partition)
{
    unsigned load = 0;

    for (unsigned i = 0; i < partition->group_count; i++)
        load += partitions->users[partition->groups[i]];
    return load;
}

bool partition_lies_in(const struct partition *partition, struct span span)
{
    for (unsigned i = 0; i < partition->group_count; i++) {
        unsigned group = partition->groups[i];
        if (group < span.first || group >= span.first + span.count)
            return false;
    }
    return true;
}
