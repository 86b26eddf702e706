/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins groups of multiprocessors into partitions, and keeps idle partitions. Partitions may
 * overlap, as in NVIDIA's MPS: they limit a client, and reserve nothing.
 */
#include "partition.h"

#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "exclusive.h"
#include "partition_place.h"

/* The smallest share that NVIDIA's MPS grants on large devices. */
#define SHARE_MIN 8u

static unsigned count_sms(const struct device *device)
{
    return (unsigned)device->record.attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT];
}

void partitions_init(struct partitions *partitions, const struct device *device)
{
    *partitions = (struct partitions){.device = device};
    pthread_mutex_init(&partitions->lock, NULL);
    list_init(&partitions->idle);
    sm_groups_init(&partitions->groups, device);
}

static unsigned least_share(const struct partitions *partitions)
{
    return count_sms(partitions->device) >= 4 * SHARE_MIN ? SHARE_MIN : partitions->groups.sms;
}

static unsigned most_in_groups(const struct partitions *partitions)
{
    return partitions->groups.count * partitions->groups.sms;
}

unsigned partitions_grant(const struct partitions *partitions, uint32_t centipercent)
{
    unsigned total = count_sms(partitions->device), step = partitions->groups.sms;

    if (!partitions->groups.count || centipercent >= 10000)
        return total;
    unsigned least = least_share(partitions), most = most_in_groups(partitions);
    unsigned granted = (unsigned)((uint64_t)total * centipercent / 10000) / step * step;
    if (granted < least)
        granted = least;
    return granted < most ? granted : most;
}

unsigned partitions_round_up(const struct partitions *partitions, unsigned sm_count)
{
    unsigned step = partitions->groups.sms;
    unsigned least = least_share(partitions);

    sm_count = (sm_count + step - 1) / step * step;
    if (sm_count < least)
        sm_count = least;
    return sm_count <= most_in_groups(partitions) ? sm_count : count_sms(partitions->device);
}

static struct span whole(const struct partitions *partitions)
{
    return (struct span){0, partitions->groups.count};
}

static unsigned groups_for(const struct partitions *partitions, unsigned sm_count)
{
    unsigned count = (sm_count + partitions->groups.sms - 1) / partitions->groups.sms;

    return count < partitions->groups.count ? count : partitions->groups.count;
}

static void count_user_locked(struct partitions *partitions, const struct partition *partition,
                              int change)
{
    for (unsigned i = 0; i < partition->group_count; i++)
        partitions->users[partition->groups[i]] += (unsigned)change;
}

/* ---- idle partitions ---- */

static struct partition *partition_new(const struct partitions *partitions)
{
    struct partition *partition = calloc(1, sizeof(*partition));

    if (!partition)
        return NULL;
    partition->device = partitions->device;
    list_init(&partition->link);
    return partition;
}

/* A partition without a green context so far. */
static struct partition *partition_new_in_locked(const struct partitions *partitions,
                                                 struct span span, unsigned sm_count)
{
    struct partition *partition = partition_new(partitions);

    if (partition)
        partition_place_locked(partitions, partition, span, groups_for(partitions, sm_count));
    return partition;
}

/* Unlike the creation, this does not wait for the GPU. */
static void partition_destroy(struct partition *partition)
{
    if (partition && partition->green)
        driver.cuGreenCtxDestroy(partition->green);
    free(partition);
}

static void remove_idle_locked(struct partitions *partitions, struct partition *partition)
{
    list_remove(&partition->link);
    partitions->idle_count--;
}

/* Takes the idle partition with the fewest other users on its groups, if a new one would not have
 * fewer. */
static struct partition *pop_idle_locked(struct partitions *partitions, struct span span,
                                         const struct partition *new)
{
    unsigned least = partition_load_locked(partitions, new) + 1;
    struct partition *best = NULL;

    list_for_each (struct partition, partition, &partitions->idle, link) {
        unsigned load = partition_load_locked(partitions, partition);
        if (partition->sm_count != new->sm_count || partition->clustered < new->clustered ||
            !partition_lies_in(partition, span) || load >= least)
            continue;
        best = partition;
        least = load;
    }
    if (best)
        remove_idle_locked(partitions, best);
    return best;
}

static void add_idle_locked(struct partitions *partitions, struct partition *partition)
{
    list_append(&partitions->idle, &partition->link);
    partitions->idle_count++;
}

/* Takes the partition that was idle for the longest time, if there are more than `keep`. */
static struct partition *pop_surplus(struct partitions *partitions, unsigned keep)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&partitions->lock);
    struct partition *oldest = NULL;

    if (partitions->idle_count > keep) {
        oldest = list_first(&partitions->idle, struct partition, link);
        remove_idle_locked(partitions, oldest);
    }
    return oldest;
}

static void drop_surplus(struct partitions *partitions, unsigned keep)
{
    struct partition *partition;

    while ((partition = pop_surplus(partitions, keep)))
        partition_destroy(partition);
}

/* ---- taking one ---- */

/* Records the sizes that were taken last, the newest first. */
static void note_size_locked(struct partitions *partitions, unsigned sm_count)
{
    unsigned i = 0;

    while (i < PARTITION_SIZES - 1 && partitions->sizes[i] != sm_count)
        i++;
    memmove(&partitions->sizes[1], partitions->sizes, i * sizeof(partitions->sizes[0]));
    partitions->sizes[0] = sm_count;
}

/* Takes an idle partition, or a new one without a green context. It is in use from now on. */
static struct partition *claim(struct partitions *partitions, struct span span, unsigned sm_count)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&partitions->lock);
    struct partition *partition = partition_new_in_locked(partitions, span, sm_count);

    if (!partition)
        return NULL;
    struct partition *idle = pop_idle_locked(partitions, span, partition);
    if (idle) {
        partition_destroy(partition);
        partition = idle;
    }
    if (span.count == partitions->groups.count)
        note_size_locked(partitions, sm_count);
    partitions->settled = false;
    count_user_locked(partitions, partition, 1);
    return partition;
}

static void unclaim(struct partitions *partitions, struct partition *partition)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&partitions->lock);

    count_user_locked(partitions, partition, -1);
    partition_destroy(partition);
}

/* Lists the driver's resources of a partition: a cluster group is one resource. */
static unsigned list_resources(const struct partitions *partitions,
                               const struct partition *partition,
                               CUdevResource ret_resources[SM_GROUPS_MAX])
{
    const struct sm_groups *groups = &partitions->groups;
    unsigned count = 0;

    for (unsigned i = 0; i < partition->clustered; i += groups->cluster_size)
        ret_resources[count++] = groups->cluster_group[partition->groups[i] / groups->cluster_size];
    for (unsigned i = partition->clustered; i < partition->group_count; i++)
        ret_resources[count++] = groups->group[partition->groups[i]];
    return count;
}

/* With a session at an idle point, else at once. */
static CUresult begin_create(struct session *session, const struct device *device,
                             struct exclusive_call *call)
{
    const char *what = "cuGreenCtxCreate";

    return session ? exclusive_begin(session, device, what, call)
                   : exclusive_begin_now(device, what, call);
}

static CUresult make_green(const struct partitions *partitions, struct session *session,
                           struct partition *partition)
{
    struct exclusive_call call;
    CUdevResource parts[SM_GROUPS_MAX];
    unsigned count = list_resources(partitions, partition, parts);
    CUdevResourceDesc description = NULL;
    CUresult result = driver.cuDevResourceGenerateDesc(&description, parts, count);
    if (result == CUDA_SUCCESS)
        result = begin_create(session, partition->device, &call);
    if (result != CUDA_SUCCESS)
        return result;
    result = driver.cuGreenCtxCreate(&partition->green, description, partition->device->ordinal,
                                     CU_GREEN_CTX_DEFAULT_STREAM);
    exclusive_end(session, partition->device, &call);
    return result;
}

/* Gives the claimed partition its green context. */
static CUresult complete_partition(struct partitions *partitions, struct session *session,
                                   struct partition *partition, struct partition **ret_partition)
{
    if (!partition)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = partition->green ? CUDA_SUCCESS : make_green(partitions, session, partition);
    if (result != CUDA_SUCCESS) {
        unclaim(partitions, partition);
        return result;
    }
    *ret_partition = partition;
    return CUDA_SUCCESS;
}

/* The measurement creates green contexts, and the driver keeps device memory for each. So a server
 * without partitions does not measure. */
static CUresult order_groups(struct partitions *partitions, struct session *session)
{
    struct sm_groups *groups = &partitions->groups;
    struct exclusive_call call;

    if (atomic_load(&groups->is_ordered))
        return CUDA_SUCCESS;
    CUresult result = begin_create(session, partitions->device, &call);
    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&partitions->lock);
    if (!atomic_load(&groups->is_ordered))
        sm_groups_order(groups, partitions->device);
    pthread_mutex_unlock(&partitions->lock);
    exclusive_end(session, partitions->device, &call);
    return CUDA_SUCCESS;
}

static CUresult take_partition(struct partitions *partitions, struct session *session,
                               struct span span, unsigned sm_count,
                               struct partition **ret_partition)
{
    CUresult result = order_groups(partitions, session);

    if (result != CUDA_SUCCESS)
        return result;
    return complete_partition(partitions, session, claim(partitions, span, sm_count),
                              ret_partition);
}

CUresult partitions_take(struct partitions *partitions, struct session *session, unsigned sm_count,
                         struct partition **ret_partition)
{
    return take_partition(partitions, session, whole(partitions), sm_count, ret_partition);
}

CUresult partitions_take_within(struct partitions *partitions, struct session *session,
                                unsigned first_sm, unsigned part_sms, unsigned sm_count,
                                struct partition **ret_partition)
{
    unsigned step = partitions->groups.sms;

    if (!partitions->groups.count || first_sm % step || part_sms % step || !sm_count ||
        sm_count > part_sms || first_sm / step + part_sms / step > partitions->groups.count)
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    return take_partition(partitions, session, (struct span){first_sm / step, part_sms / step},
                          sm_count, ret_partition);
}

/* ---- groups that a client names ---- */

unsigned partitions_count_clustered(const struct partitions *partitions,
                                    const struct partition *within)
{
    return within ? within->clustered : sm_groups_clustered(&partitions->groups);
}

unsigned partitions_clustered_sms(const struct partitions *partitions)
{
    return sm_groups_clustered(&partitions->groups) * partitions->groups.sms;
}

unsigned partitions_count_groups(const struct partitions *partitions,
                                 const struct partition *within)
{
    return within ? within->group_count : partitions->groups.count;
}

static struct partition *list_groups(const struct partitions *partitions,
                                     const struct partition *within, const uint8_t *groups,
                                     unsigned count)
{
    unsigned range = partitions_count_groups(partitions, within);
    struct partition *partition = partition_new(partitions);
    bool chosen[SM_GROUPS_MAX] = {false};

    if (!partition)
        return NULL;
    for (unsigned i = 0; i < count && i < range; i++) {
        unsigned group = groups[i] % range;

        chosen[within ? within->groups[group] : group] = true;
    }
    partition_set_groups(partitions, partition, chosen);
    return partition;
}

static struct partition *pop_same_locked(struct partitions *partitions,
                                         const struct partition *wanted)
{
    list_for_each (struct partition, partition, &partitions->idle, link) {
        if (partition->group_count != wanted->group_count ||
            memcmp(partition->groups, wanted->groups, wanted->group_count) != 0)
            continue;
        remove_idle_locked(partitions, partition);
        return partition;
    }
    return NULL;
}

CUresult partitions_take_groups(struct partitions *partitions, struct session *session,
                                const struct partition *within, const uint8_t *groups,
                                unsigned count, struct partition **ret_partition)
{
    CUresult result = order_groups(partitions, session);

    if (result != CUDA_SUCCESS)
        return result;
    struct partition *partition = list_groups(partitions, within, groups, count), *same;
    if (!partition)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_lock(&partitions->lock);
    same = pop_same_locked(partitions, partition);
    if (same) {
        free(partition);
        partition = same;
    }
    partitions->settled = false;
    count_user_locked(partitions, partition, 1);
    pthread_mutex_unlock(&partitions->lock);
    return complete_partition(partitions, session, partition, ret_partition);
}

struct group_set partition_group_set(const struct partition *partition)
{
    struct group_set set;

    memset(&set, partition ? 0 : 0xff, sizeof(set));
    for (unsigned i = 0; partition && i < partition->group_count; i++)
        set.words[partition->groups[i] / 64] |= 1ull << partition->groups[i] % 64;
    return set;
}

void partitions_put_back(struct partitions *partitions, struct partition *partition)
{
    if (!partition)
        return;
    pthread_mutex_lock(&partitions->lock);
    count_user_locked(partitions, partition, -1);
    add_idle_locked(partitions, partition);
    partitions->settled = false;
    pthread_mutex_unlock(&partitions->lock);
    drop_surplus(partitions, PARTITIONS_IDLE_MAX);
}

/* ---- in advance ---- */

static void count_idle_locked(struct partitions *partitions, unsigned sm_count, int change)
{
    list_for_each (struct partition, partition, &partitions->idle, link) {
        if (partition->sm_count == sm_count)
            count_user_locked(partitions, partition, change);
    }
}

/* A new partition of that size; NULL when it would overlap clients or idle partitions of that size.
 */
static struct partition *place_spare_locked(struct partitions *partitions, unsigned sm_count)
{
    count_idle_locked(partitions, sm_count, 1);
    struct partition *spare = partition_new_in_locked(partitions, whole(partitions), sm_count);
    bool is_taken = spare && partition_load_locked(partitions, spare) > 0;

    count_idle_locked(partitions, sm_count, -1);
    if (!is_taken)
        return spare;
    partition_destroy(spare);
    return NULL;
}

static struct partition *place_spare(struct partitions *partitions)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&partitions->lock);
    struct partition *spare = NULL;

    if (partitions->idle_count < PARTITION_SPARES_MAX) {
        for (unsigned i = 0; i < PARTITION_SIZES && partitions->sizes[i] && !spare; i++)
            spare = place_spare_locked(partitions, partitions->sizes[i]);
    }
    partitions->settled = !spare;
    return spare;
}

bool partitions_want_spare(struct partitions *partitions)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&partitions->lock);

    return partitions->sizes[0] && !partitions->settled;
}

bool partitions_make_spare(struct partitions *partitions)
{
    struct partition *spare = place_spare(partitions);

    if (!spare)
        return false;
    bool made = make_green(partitions, NULL, spare) == CUDA_SUCCESS;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&partitions->lock);

    if (made)
        add_idle_locked(partitions, spare);
    else
        partition_destroy(spare);
    partitions->settled = !made; /* after a refusal of the driver, do not retry at once */
    return made;
}

void partitions_trim(struct partitions *partitions)
{
    pthread_mutex_lock(&partitions->lock);
    memset(partitions->sizes, 0, sizeof(partitions->sizes));
    pthread_mutex_unlock(&partitions->lock);
    drop_surplus(partitions, 0);
}
