/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Divides devices into the smallest groups of multiprocessors that the driver allows, and joins
 * neighbouring groups into partitions. Partitions may overlap, as shares of NVIDIA's MPS do: they
 * bound what a client takes, and reserve nothing.
 */
#include "partition.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>

#include "cleanup.h"
#include "log.h"

#define GROUP_SMS 2u
#define ANYWHERE UINT_MAX

/* What NVIDIA's MPS grants at least, on devices that have much more. */
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
    CUdevResource all, rest;
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
        log_line("Device %d can not be divided: shares of its multiprocessors are not enforced",
                 device->ordinal);
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

static struct partition *pop_idle_locked(struct partitions *partitions, unsigned sm_count,
                                         unsigned first_group)
{
    list_for_each(struct partition, partition, &partitions->idle, link)
    {
        if (partition->sm_count == sm_count &&
            (first_group == ANYWHERE || partition->first_group == first_group)) {
            list_remove(&partition->link);
            return partition;
        }
    }
    return NULL;
}

static unsigned load_of_locked(const struct partitions *partitions, unsigned first, unsigned count)
{
    unsigned load = 0;

    for (unsigned i = 0; i < count; i++)
        load += partitions->users[(first + i) % partitions->group_count];
    return load;
}

static unsigned emptiest_place_locked(const struct partitions *partitions, unsigned count)
{
    unsigned best = 0;

    for (unsigned first = 1; first < partitions->group_count; first++) {
        if (load_of_locked(partitions, first, count) < load_of_locked(partitions, best, count))
            best = first;
    }
    return best;
}

static void count_user_locked(struct partitions *partitions, const struct partition *partition,
                              int change)
{
    for (unsigned i = 0; i < partition->group_count; i++)
        partitions->users[(partition->first_group + i) % partitions->group_count] +=
            (unsigned)change;
}

/* Either a partition that is there, or the place for a new one; in use from now on either way. */
static struct partition *claim(struct partitions *partitions, unsigned sm_count,
                               unsigned first_group)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&partitions->lock);
    struct partition *partition = pop_idle_locked(partitions, sm_count, first_group);

    if (!partition) {
        partition = calloc(1, sizeof(*partition));
        if (!partition)
            return NULL;
        partition->device = partitions->device;
        partition->sm_count = sm_count;
        partition->group_count = (sm_count + partitions->group_sms - 1) / partitions->group_sms;
        if (partition->group_count > partitions->group_count)
            partition->group_count = partitions->group_count;
        partition->first_group = first_group != ANYWHERE
                                     ? first_group
                                     : emptiest_place_locked(partitions, partition->group_count);
        list_init(&partition->link);
    }
    count_user_locked(partitions, partition, 1);
    return partition;
}

static void forget(struct partitions *partitions, struct partition *partition)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&partitions->lock);

    count_user_locked(partitions, partition, -1);
    free(partition);
}

static CUresult make_green(const struct partitions *partitions, struct partition *partition)
{
    CUdevResource parts[PARTITION_GROUPS_MAX];
    CUdevResourceDesc description = NULL;

    for (unsigned i = 0; i < partition->group_count; i++)
        parts[i] = partitions->groups[(partition->first_group + i) % partitions->group_count];
    CUresult result = driver.cuDevResourceGenerateDesc(&description, parts, partition->group_count);
    if (result == CUDA_SUCCESS)
        result = driver.cuGreenCtxCreate(&partition->green, description, partition->device->ordinal,
                                         CU_GREEN_CTX_DEFAULT_STREAM);
    return result;
}

static CUresult take(struct partitions *partitions, unsigned sm_count, unsigned first_group,
                     struct partition **ret_partition)
{
    struct partition *partition = claim(partitions, sm_count, first_group);

    if (!partition)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = partition->green ? CUDA_SUCCESS : make_green(partitions, partition);
    if (result != CUDA_SUCCESS) {
        forget(partitions, partition);
        return result;
    }
    *ret_partition = partition;
    return CUDA_SUCCESS;
}

CUresult partitions_take(struct partitions *partitions, unsigned sm_count,
                         struct partition **ret_partition)
{
    return take(partitions, sm_count, ANYWHERE, ret_partition);
}

CUresult partitions_take_fixed(struct partitions *partitions, unsigned first_sm, unsigned sm_count,
                               struct partition **ret_partition)
{
    unsigned step = partitions->group_sms;

    if (!partitions->group_count || !sm_count || first_sm % step || sm_count % step ||
        first_sm / step + sm_count / step > partitions->group_count)
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    return take(partitions, sm_count, first_sm / step, ret_partition);
}

void partitions_put_back(struct partitions *partitions, struct partition *partition)
{
    if (!partition)
        return;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&partitions->lock);
    count_user_locked(partitions, partition, -1);
    list_append(&partitions->idle, &partition->link);
}
