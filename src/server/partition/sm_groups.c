/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver does not report the cluster group of each smallest group, so a measurement finds out
 * (sm_locate.h). On an H100 the groups of two are not in the order of the cluster groups.
 */
#include "sm_groups.h"

#include <string.h>

#include "log.h"
#include "sm_locate.h"

#define SMALLEST_SMS 2u

/* The group and the cluster group of each multiprocessor, counted from 1; 0 = in none. */
struct layout {
    uint16_t group[SM_NUMBERS_MAX];
    uint16_t cluster_group[SM_NUMBERS_MAX];
};

static bool driver_can_divide(void)
{
    return driver.cuDeviceGetDevResource && driver.cuDevSmResourceSplitByCount &&
           driver.cuDevResourceGenerateDesc && driver.cuGreenCtxCreate &&
           driver.cuGreenCtxDestroy && driver.cuGreenCtxStreamCreate;
}

static CUresult split_sms(const CUdevResource *all, unsigned flags, unsigned sms,
                          CUdevResource ret_parts[SM_GROUPS_MAX], unsigned *ret_count)
{
    CUdevResource rest;

    *ret_count = SM_GROUPS_MAX;
    return driver.cuDevSmResourceSplitByCount(ret_parts, ret_count, all, &rest, flags, sms);
}

static CUresult divide(struct sm_groups *groups, const struct device *device,
                       CUdevResource *ret_all)
{
    CUresult result =
        driver.cuDeviceGetDevResource(device->ordinal, ret_all, CU_DEV_RESOURCE_TYPE_SM);

    if (result == CUDA_SUCCESS)
        result = split_sms(ret_all, CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING, SMALLEST_SMS,
                           groups->group, &groups->count);
    if (result != CUDA_SUCCESS)
        return result;
    groups->sms = groups->count ? groups->group[0].sm.smCount : 0;
    groups->least = ret_all->sm.minSmPartitionSize;
    groups->scheduled = ret_all->sm.smCoscheduledAlignment;
    return groups->sms ? CUDA_SUCCESS : CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
}

/* A device of one cluster group cannot be divided into cluster groups. */
static bool find_cluster_groups(struct sm_groups *groups, const struct device *device,
                                const CUdevResource *all)
{
    unsigned count;

    if (!device->record.attributes[CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH] || !groups->scheduled ||
        groups->scheduled >= all->sm.smCount ||
        split_sms(all, 0, groups->scheduled, groups->cluster_group, &count) != CUDA_SUCCESS ||
        !count)
        return false;
    groups->cluster_count = count;
    groups->cluster_size = groups->cluster_group[0].sm.smCount / groups->sms;
    return groups->cluster_size > 1;
}

static CUresult measure_layout(const struct sm_groups *groups, const struct device *device,
                               struct layout *ret_layout)
{
    struct sm_locator locator;
    CUresult result = sm_locator_init(&locator, device);

    if (result != CUDA_SUCCESS)
        return result;
    result = sm_locate(&locator, groups->cluster_group, groups->cluster_count,
                       ret_layout->cluster_group);
    if (result == CUDA_SUCCESS)
        result = sm_locate(&locator, groups->group, groups->count, ret_layout->group);
    sm_locator_fini(&locator);
    return result;
}

/* The cluster group of each group, counted from 1. False when a group is in several, or a cluster
 * group has a wrong number of groups. */
static bool assign_groups(const struct sm_groups *groups, const struct layout *layout,
                          uint16_t ret_home[SM_GROUPS_MAX])
{
    unsigned sms[SM_GROUPS_MAX + 1] = {0};
    bool known[SM_GROUPS_MAX] = {false};

    for (unsigned sm = 0; sm < SM_NUMBERS_MAX; sm++) {
        uint16_t group = layout->group[sm], home = layout->cluster_group[sm];

        if (!group)
            continue;
        if (known[group - 1] && ret_home[group - 1] != home)
            return false;
        known[group - 1] = true;
        ret_home[group - 1] = home;
        sms[home]++;
    }
    for (unsigned i = 1; i <= groups->cluster_count; i++)
        if (sms[i] != groups->cluster_size * groups->sms)
            return false;
    return true;
}

/* Sorts the groups by cluster group; groups in none come last. */
static void sort_groups(struct sm_groups *groups, const uint16_t home[SM_GROUPS_MAX])
{
    CUdevResource sorted[SM_GROUPS_MAX];
    unsigned count = 0;

    for (unsigned number = 1; number <= groups->cluster_count + 1; number++)
        for (unsigned i = 0; i < groups->count; i++)
            if (home[i] == number % (groups->cluster_count + 1))
                sorted[count++] = groups->group[i];
    memcpy(groups->group, sorted, count * sizeof(*sorted));
}

/* Uses whole cluster groups only: running clusters matters more than the exact size of a share. */
static void use_cluster_groups_alone(struct sm_groups *groups, const struct device *device,
                                     CUresult result)
{
    log_line("Device %d: SM shares are multiples of %u multiprocessors, because it could not be "
             "measured where smaller groups lie: %s",
             device->ordinal, groups->cluster_size * groups->sms, driver_error_name(result));
    memcpy(groups->group, groups->cluster_group, sizeof(groups->group));
    groups->count = groups->cluster_count;
    groups->sms *= groups->cluster_size;
    groups->cluster_size = 1;
}

void sm_groups_order(struct sm_groups *groups, const struct device *device)
{
    struct layout layout;
    uint16_t home[SM_GROUPS_MAX] = {0};
    CUresult result = measure_layout(groups, device, &layout);

    if (result == CUDA_SUCCESS && !assign_groups(groups, &layout, home))
        result = CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    if (result == CUDA_SUCCESS)
        sort_groups(groups, home);
    else
        use_cluster_groups_alone(groups, device, result);
    atomic_store(&groups->is_ordered, true);
}

void sm_groups_init(struct sm_groups *groups, const struct device *device)
{
    CUdevResource all = {0};

    memset(groups, 0, sizeof(*groups));
    if (!driver_can_divide() || divide(groups, device, &all) != CUDA_SUCCESS) {
        groups->count = 0;
        log_line("Device %d cannot be divided: SM shares are not enforced", device->ordinal);
    } else if (find_cluster_groups(groups, device, &all)) {
        return;
    }
    groups->cluster_count = 0;
    atomic_store(&groups->is_ordered, true);
}
