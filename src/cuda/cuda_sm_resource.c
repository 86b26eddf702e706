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

/* Clusters of so many blocks run on any two multiprocessors that share a texture processor. */
#define CLUSTER_ANYWHERE 2u

static unsigned count_bits(const uint64_t *words)
{
    unsigned count = 0;

    for (unsigned i = 0; i < SM_SET_WORDS; i++)
        count += (unsigned)__builtin_popcountll(words[i]);
    return count;
}

static void set_bits(uint64_t *words, unsigned end)
{
    memset(words, 0, SM_SET_WORDS * sizeof(*words));
    for (unsigned sm = 0; sm < end && sm < SM_SET_MAX; sm++)
        words[sm / 64] |= 1ull << sm % 64;
}

unsigned sm_set_count(const struct sm_set *set)
{
    return count_bits(set->sms);
}

void sm_set_fill(struct sm_set *set, unsigned count, unsigned coscheduled)
{
    set_bits(set->sms, count);
    set_bits(set->coscheduled, coscheduled < count ? coscheduled : count);
}

unsigned sm_set_count_for_cluster(const struct sm_set *set, unsigned cluster_size)
{
    if (cluster_size <= CLUSTER_ANYWHERE)
        return sm_set_count(set);
    return cluster_size <= set->scheduled ? count_bits(set->coscheduled) : 0;
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

/* Moves the lowest `count` of `choice`, which are some of those of `from`, into `to`. How many are
 * missing in the end. */
static unsigned move_lowest(struct sm_set *from, struct sm_set *to, const uint64_t *choice,
                            unsigned count)
{
    for (unsigned sm = 0; sm < SM_SET_MAX && count > 0; sm++) {
        uint64_t bit = 1ull << sm % 64;

        if (!(choice[sm / 64] & bit))
            continue;
        from->sms[sm / 64] &= ~bit;
        to->sms[sm / 64] |= bit;
        count--;
    }
    return count;
}

/* Of the co-scheduled groups of `before` those that lie in the set as a whole. */
static void keep_whole_groups(struct sm_set *set, const struct sm_set *before)
{
    memset(set->coscheduled, 0, sizeof(set->coscheduled));
    for (unsigned first = 0; first < SM_SET_MAX; first += set->scheduled) {
        bool whole = true;

        for (unsigned sm = first; sm < first + set->scheduled && sm < SM_SET_MAX; sm++)
            whole &= !(before->coscheduled[sm / 64] & ~set->sms[sm / 64] & 1ull << sm % 64);
        for (unsigned sm = first; whole && sm < first + set->scheduled && sm < SM_SET_MAX; sm++)
            set->coscheduled[sm / 64] |= before->coscheduled[sm / 64] & 1ull << sm % 64;
    }
}

/* Takes a group of so many out of those that are left: where co-scheduling counts, whole
 * co-scheduled groups first. */
static void take_group(struct sm_set *left, struct sm_set *group, unsigned size, bool coscheduled)
{
    const struct sm_set before = *left;

    sm_set_fill(group, 0, 0);
    if (coscheduled)
        size = move_lowest(left, group, before.coscheduled, size);
    const struct sm_set others = *left;
    move_lowest(left, group, others.sms, size);
    keep_whole_groups(left, &before);
    if (coscheduled)
        keep_whole_groups(group, &before);
}

static bool is_coscheduled(unsigned flags)
{
    return !(flags & CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING);
}

static unsigned group_size(const struct sm_set *set, unsigned wanted, unsigned flags)
{
    unsigned unit = is_coscheduled(flags) ? set->scheduled : set->unit;
    unsigned least = is_coscheduled(flags) ? set->least : set->unit;

    if (wanted < least)
        wanted = least;
    wanted = (wanted + unit - 1) / unit * unit;
    return wanted < sm_set_count(set) ? wanted : sm_set_count(set);
}

/* Where co-scheduling counts, a part has one whole co-scheduled group at least, or is the whole
 * set. */
static unsigned count_groups(const struct sm_set *set, unsigned size, unsigned flags)
{
    unsigned possible = sm_set_count(set) / size,
             whole = count_bits(set->coscheduled) / set->scheduled;

    if (!is_coscheduled(flags) || size == sm_set_count(set))
        return possible;
    return possible < whole ? possible : whole;
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
    unsigned possible = count_groups(&left, size, flags);
    left.is_part = true;
    unsigned wanted = result && *groups < possible ? *groups : possible;
    for (unsigned i = 0; i < wanted; i++) {
        struct sm_set group = left;

        take_group(&left, &group, size, is_coscheduled(flags));
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
        for (unsigned word = 0; word < SM_SET_WORDS; word++) {
            all.sms[word] |= set.sms[word];
            all.coscheduled[word] |= set.coscheduled[word];
        }
    }
    *ret_set = all;
    return CUDA_SUCCESS;
}
