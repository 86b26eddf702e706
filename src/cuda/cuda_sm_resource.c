/* SPDX-License-Identifier: Apache-2.0 */
/* Dividing multiprocessors and putting the parts together again; see cuda_sm_resource.h. */
#include "cuda_sm_resource.h"

#include <string.h>

/* These two exclude each other; flags that CUDA does not have change nothing. */
#define EXCLUSIVE_FLAGS                                \
    (CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING | \
     CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE)

/* Tells a resource of ours from bytes that a program made up by mistake. */
#define MAGIC 0x46534d53u

struct content {
    uint32_t magic;
    struct sm_set set;
};

_Static_assert(sizeof(struct content) <= sizeof(((CUdevResource *)0)->_internal_padding),
               "a set of multiprocessors fits into a resource");

unsigned sm_set_count(const struct sm_set *set)
{
    unsigned count = 0;

    for (unsigned i = 0; i < SM_SET_WORDS; i++)
        count += (unsigned)__builtin_popcountll(set->sms[i]);
    return count;
}

void sm_set_fill(struct sm_set *set, unsigned count)
{
    memset(set->sms, 0, sizeof(set->sms));
    for (unsigned sm = 0; sm < count && sm < SM_SET_MAX; sm++)
        set->sms[sm / 64] |= 1ull << sm % 64;
}

void sm_set_to_resource(const struct sm_set *set, CUdevResource *ret_resource)
{
    struct content content = {.magic = MAGIC, .set = *set};

    memset(ret_resource, 0, sizeof(*ret_resource));
    ret_resource->type = CU_DEV_RESOURCE_TYPE_SM;
    memcpy(ret_resource->_internal_padding, &content, sizeof(content));
    ret_resource->sm.smCount = sm_set_count(set);
    if (set->is_part)
        return;
    ret_resource->sm.minSmPartitionSize = set->least;
    ret_resource->sm.smCoscheduledAlignment = set->scheduled;
}

bool sm_set_from_resource(const CUdevResource *resource, struct sm_set *ret_set)
{
    struct content content;

    if (resource->type != CU_DEV_RESOURCE_TYPE_SM)
        return false;
    memcpy(&content, resource->_internal_padding, sizeof(content));
    if (content.magic != MAGIC || !content.set.unit || !content.set.scheduled ||
        sm_set_count(&content.set) != resource->sm.smCount)
        return false;
    *ret_set = content.set;
    return true;
}

/* Moves the lowest `count` multiprocessors of one set into another. */
static void take(struct sm_set *from, struct sm_set *to, unsigned count)
{
    for (unsigned sm = 0; sm < SM_SET_MAX && count > 0; sm++) {
        uint64_t bit = 1ull << sm % 64;

        if (!(from->sms[sm / 64] & bit))
            continue;
        from->sms[sm / 64] &= ~bit;
        to->sms[sm / 64] |= bit;
        count--;
    }
}

static unsigned group_size(const struct sm_set *set, unsigned wanted, unsigned flags)
{
    bool ignore = flags & CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING;
    unsigned unit = ignore ? set->unit : set->scheduled;
    unsigned least = ignore ? set->unit : set->least;

    if (wanted < least)
        wanted = least;
    wanted = (wanted + unit - 1) / unit * unit;
    return wanted < sm_set_count(set) ? wanted : sm_set_count(set);
}

CUresult sm_set_split(CUdevResource *result, unsigned *groups, const CUdevResource *input,
                      CUdevResource *remaining, unsigned flags, unsigned least)
{
    struct sm_set left;

    if (!groups || !input || (flags & EXCLUSIVE_FLAGS) == EXCLUSIVE_FLAGS ||
        (result && *groups == 0))
        return CUDA_ERROR_INVALID_VALUE;
    if (!sm_set_from_resource(input, &left))
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    if (left.is_part || least > sm_set_count(&left) || !sm_set_count(&left))
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    unsigned size = group_size(&left, least, flags);
    unsigned possible = sm_set_count(&left) / size;
    left.is_part = true;
    unsigned wanted = result && *groups < possible ? *groups : possible;
    for (unsigned i = 0; i < wanted; i++) {
        struct sm_set group = left;

        sm_set_fill(&group, 0);
        take(&left, &group, size);
        if (result)
            sm_set_to_resource(&group, &result[i]);
    }
    *groups = wanted;
    if (remaining && sm_set_count(&left))
        sm_set_to_resource(&left, remaining);
    else if (remaining)
        memset(remaining, 0, sizeof(*remaining));
    return CUDA_SUCCESS;
}

CUresult sm_set_join(const CUdevResource *resources, unsigned count, struct sm_set *ret_set)
{
    struct sm_set all = {0};

    for (unsigned i = 0; i < count; i++) {
        struct sm_set set;

        if (!sm_set_from_resource(&resources[i], &set) || !sm_set_count(&set))
            return CUDA_ERROR_INVALID_RESOURCE_TYPE;
        if (i == 0)
            all = set;
        if (set.device != all.device)
            return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
        for (unsigned word = 0; word < SM_SET_WORDS; word++)
            all.sms[word] |= set.sms[word];
    }
    *ret_set = all;
    return CUDA_SUCCESS;
}
