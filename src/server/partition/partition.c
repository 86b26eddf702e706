/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Divides devices into the smallest groups of multiprocessors that the driver allows, and joins
 * neighboring groups into partitions. Partitions may overlap, as those of NVIDIA's MPS do: they
 * limit what a client uses, and reserve nothing.
 */
#include "partition.h"

#include <stdlib.h>
#include <string.h>

#include "calm.h"
#include "cleanup.h"
#include "log.h"

#define GROUP_SMS 2u

/* The fewest that NVIDIA's MPS grants, on devices that have many more. */
#define SHARE_MIN 8u

static unsigned count_sms(const struct device *device)
{
    return (unsigned)device->record.attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT];
}

static bool driver_can_divide(void)
{
    return driver.cuDeviceGetDevResource && driver.cuDevSmResourceSplitByCount &&
           driver.cuDevResourceGenerateDesc && driver.cuGreenCtxCreate &&
           driver.cuGreenCtxDestroy && driver.cuGreenCtxStreamCreate;
}

static CUresult divide(struct partitions *partitions)
{
    CUdevResource all = {0}, rest;
    unsigned count = PARTITION_GROUPS_MAX;
    CUresult result =
        driver.cuDeviceGetDevResource(partitions->device->ordinal, &all, CU_DEV_RESOURCE_TYPE_SM);

    if (result == CUDA_SUCCESS)
        result = driver.cuDevSmResourceSplitByCount(partitions->groups, &count, &all, &rest,
                                                    CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING,
                                                    GROUP_SMS);
    if (result != CUDA_SUCCESS)
        return result;
    partitions->group_count = count;
    partitions->group_sms = count ? partitions->groups[0].sm.smCount : 0;
    partitions->least = all.sm.minSmPartitionSize;
    partitions->scheduled = all.sm.smCoscheduledAlignment;
    return CUDA_SUCCESS;
}

void partitions_init(struct partitions *partitions, const struct device *device)
{
    *partitions = (struct partitions){.device = device};
    pthread_mutex_init(&partitions->lock, NULL);
    list_init(&partitions->idle);
    if (!driver_can_divide() || divide(partitions) != CUDA_SUCCESS || !partitions->group_sms)
        partitions->group_count = 0;
    if (!partitions->group_count)
        log_line("Device %d cannot be divided: SM shares are not enforced", device->ordinal);
}

static unsigned least_share(const struct partitions *partitions)
{
    return count_sms(partitions->device) >= 4 * SHARE_MIN ? SHARE_MIN : partitions->group_sms;
}

unsigned partitions_grant(const struct partitions *partitions, uint32_t centipercent)
{
    unsigned total = count_sms(partitions->device), step = partitions->group_sms;

    if (!partitions->group_count || centipercent >= 10000)
        return total;
    unsigned least = least_share(partitions);
    unsigned granted = (unsigned)((uint64_t)total * centipercent / 10000) / step * step;
    if (granted < least)
        granted = least;
    return granted < total ? granted : total;
}

unsigned partitions_round_up(const struct partitions *partitions, unsigned sm_count)
{
    unsigned step = partitions->group_sms;
    unsigned total = count_sms(partitions->device);
    unsigned least = least_share(partitions);

    sm_count = (sm_count + step - 1) / step * step;
    if (sm_count < least)
        sm_count = least;
    return sm_count < total ? sm_count : total;
}

/* ---- places ---- */

/* A range of groups. Only a range of the whole device wraps around at its end. */
struct span {
    unsigned first, count;
};

static struct span whole(const struct partitions *partitions)
{
    return (struct span){0, partitions->group_count};
}

static bool lies_in(const struct partitions *partitions, const struct partition *partition,
                    struct span span)
{
    return span.count == partitions->group_count ||
           (partition->first_group >= span.first &&
            partition->first_group + partition->group_count <= span.first + span.count);
}

static unsigned groups_for(const struct partitions *partitions, unsigned sm_count)
{
    unsigned count = (sm_count + partitions->group_sms - 1) / partitions->group_sms;

    return count < partitions->group_count ? count : partitions->group_count;
}

static unsigned load_of_locked(const struct partitions *partitions, unsigned first, unsigned count)
{
    unsigned load = 0;

    for (unsigned i = 0; i < count; i++)
        load += partitions->users[(first + i) % partitions->group_count];
    return load;
}

static unsigned emptiest_place_locked(const struct partitions *partitions, struct span span,
                                      unsigned count)
{
    unsigned places = span.count == partitions->group_count ? span.count : span.count - count + 1;
    unsigned best = span.first;

    for (unsigned first = span.first + 1; first < span.first + places; first++) {
        if (load_of_locked(partitions, first, count) < load_of_locked(partitions, best, count))
            best = first;
    }
    return best;
}

static unsigned group_at(const struct partitions *partitions, const struct partition *partition,
                         unsigned i)
{
    return partition->listed ? partition->groups[i]
                             : (partition->first_group + i) % partitions->group_count;
}

static void count_user_locked(struct partitions *partitions, const struct partition *partition,
                              int change)
{
    for (unsigned i = 0; i < partition->group_count; i++)
        partitions->users[group_at(partitions, partition, i)] += (unsigned)change;
}

/* ---- idle partitions ---- */

static struct partition *partition_create(const struct partitions *partitions, unsigned sm_count,
                                          unsigned first_group)
{
    struct partition *partition = calloc(1, sizeof(*partition));

    if (!partition)
        return NULL;
    partition->device = partitions->device;
    partition->sm_count = sm_count;
    partition->group_count = groups_for(partitions, sm_count);
    partition->first_group = first_group;
    list_init(&partition->link);
    return partition;
}

/* Unlike creating one, this does not wait for the GPU. */
static void partition_destroy(struct partition *partition)
{
    if (partition && partition->green)
        driver.cuGreenCtxDestroy(partition->green);
    free(partition);
}

/* The idle partition with the fewest others on it, if one lies as well as `place`. */
static struct partition *pop_idle_locked(struct partitions *partitions, struct span span,
                                         unsigned sm_count, unsigned place)
{
    unsigned count = groups_for(partitions, sm_count);
    unsigned least = load_of_locked(partitions, place, count) + 1;
    struct partition *best = NULL;

    list_for_each (struct partition, partition, &partitions->idle, link) {
        unsigned load = load_of_locked(partitions, partition->first_group, count);
        if (partition->listed || partition->sm_count != sm_count ||
            !lies_in(partitions, partition, span) || load >= least)
            continue;
        best = partition;
        least = load;
    }
    if (best) {
        list_remove(&best->link);
        partitions->idle_count--;
    }
    return best;
}

static void add_idle_locked(struct partitions *partitions, struct partition *partition)
{
    list_append(&partitions->idle, &partition->link);
    partitions->idle_count++;
}

/* The partition that has been idle for longest, if there are more than `keep`. */
static struct partition *pop_surplus(struct partitions *partitions, unsigned keep)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&partitions->lock);
    struct partition *oldest = NULL;

    if (partitions->idle_count > keep) {
        oldest = list_first(&partitions->idle, struct partition, link);
        list_remove(&oldest->link);
        partitions->idle_count--;
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

/* The sizes that were taken last, the newest first. */
static void note_size_locked(struct partitions *partitions, unsigned sm_count)
{
    unsigned i = 0;

    while (i < PARTITION_SIZES - 1 && partitions->sizes[i] != sm_count)
        i++;
    memmove(&partitions->sizes[1], partitions->sizes, i * sizeof(partitions->sizes[0]));
    partitions->sizes[0] = sm_count;
}

/* An idle partition, or the place for a new one. Either is in use from now on. */
static struct partition *claim(struct partitions *partitions, struct span span, unsigned sm_count)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&partitions->lock);
    unsigned place = emptiest_place_locked(partitions, span, groups_for(partitions, sm_count));
    struct partition *partition = pop_idle_locked(partitions, span, sm_count, place);

    if (!partition)
        partition = partition_create(partitions, sm_count, place);
    if (!partition)
        return NULL;
    if (span.count == partitions->group_count)
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

/* With a session in a calm moment, else at once. */
static CUresult make_green(const struct partitions *partitions, struct session *session,
                           struct partition *partition)
{
    const char *call = "cuGreenCtxCreate";
    struct calm calm;
    CUdevResource parts[PARTITION_GROUPS_MAX];
    CUdevResourceDesc description = NULL;

    for (unsigned i = 0; i < partition->group_count; i++)
        parts[i] = partitions->groups[group_at(partitions, partition, i)];
    CUresult result = driver.cuDevResourceGenerateDesc(&description, parts, partition->group_count);
    if (result == CUDA_SUCCESS)
        result = session ? calm_begin(session, partition->device, call, &calm)
                         : calm_begin_at_once(partition->device, call, &calm);
    if (result != CUDA_SUCCESS)
        return result;
    result = driver.cuGreenCtxCreate(&partition->green, description, partition->device->ordinal,
                                     CU_GREEN_CTX_DEFAULT_STREAM);
    calm_end(session, partition->device, &calm);
    return result;
}

/* What was claimed, with a green context. */
static CUresult complete(struct partitions *partitions, struct session *session,
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

static CUresult take(struct partitions *partitions, struct session *session, struct span span,
                     unsigned sm_count, struct partition **ret_partition)
{
    return complete(partitions, session, claim(partitions, span, sm_count), ret_partition);
}

CUresult partitions_take(struct partitions *partitions, struct session *session, unsigned sm_count,
                         struct partition **ret_partition)
{
    return take(partitions, session, whole(partitions), sm_count, ret_partition);
}

CUresult partitions_take_within(struct partitions *partitions, struct session *session,
                                unsigned first_sm, unsigned part_sms, unsigned sm_count,
                                struct partition **ret_partition)
{
    unsigned step = partitions->group_sms;

    if (!partitions->group_count || first_sm % step || part_sms % step || !sm_count ||
        sm_count > part_sms || first_sm / step + part_sms / step > partitions->group_count)
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    return take(partitions, session, (struct span){first_sm / step, part_sms / step}, sm_count,
                ret_partition);
}

/* ---- groups that a client names ---- */

unsigned partitions_count_groups(const struct partitions *partitions,
                                 const struct partition *within)
{
    return within ? within->group_count : partitions->group_count;
}

static struct partition *list_groups(const struct partitions *partitions,
                                     const struct partition *within, const uint8_t *groups,
                                     unsigned count)
{
    unsigned range = partitions_count_groups(partitions, within);
    struct partition *partition = partition_create(partitions, 0, 0);

    if (!partition)
        return NULL;
    partition->listed = true;
    partition->group_count = 0;
    for (unsigned i = 0; i < count && i < range; i++) {
        unsigned group = groups[i] % range;

        if (within)
            group = group_at(partitions, within, group);
        if (!memchr(partition->groups, (int)group, partition->group_count))
            partition->groups[partition->group_count++] = (uint8_t)group;
    }
    partition->sm_count = partition->group_count * partitions->group_sms;
    return partition;
}

static struct partition *pop_same_locked(struct partitions *partitions,
                                         const struct partition *wanted)
{
    list_for_each (struct partition, partition, &partitions->idle, link) {
        if (!partition->listed || partition->group_count != wanted->group_count ||
            memcmp(partition->groups, wanted->groups, wanted->group_count) != 0)
            continue;
        list_remove(&partition->link);
        partitions->idle_count--;
        return partition;
    }
    return NULL;
}

CUresult partitions_take_groups(struct partitions *partitions, struct session *session,
                                const struct partition *within, const uint8_t *groups,
                                unsigned count, struct partition **ret_partition)
{
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
    return complete(partitions, session, partition, ret_partition);
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
        if (!partition->listed && partition->sm_count == sm_count)
            count_user_locked(partitions, partition, change);
    }
}

/* A new partition of that size at a place without clients and idle partitions of that size, or
 * NULL. */
static struct partition *place_spare_locked(struct partitions *partitions, unsigned sm_count)
{
    unsigned count = groups_for(partitions, sm_count);

    count_idle_locked(partitions, sm_count, 1);
    unsigned place = emptiest_place_locked(partitions, whole(partitions), count);
    bool free_place = !load_of_locked(partitions, place, count);
    count_idle_locked(partitions, sm_count, -1);
    return free_place ? partition_create(partitions, sm_count, place) : NULL;
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
    partitions->settled = !made; /* what the driver refuses is not tried again at once */
    return made;
}

void partitions_trim(struct partitions *partitions)
{
    pthread_mutex_lock(&partitions->lock);
    memset(partitions->sizes, 0, sizeof(partitions->sizes));
    pthread_mutex_unlock(&partitions->lock);
    drop_surplus(partitions, 0);
}
