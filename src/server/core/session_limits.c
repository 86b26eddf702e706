/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of a client, each in one place. */
#include "session_limits.h"

void session_limits_init(struct session_limits *limits, const struct server_limits *from)
{
    limits->fixed_device = from->fixed_device;
    limits->fixed_first = from->fixed_first;
    limits->fixed_count = from->fixed_count;
    limits->fixed_only = from->fixed_only;
    limits->totals_show_limit = from->totals_show_limit;
    limits->may_borrow = from->may_borrow;
    limits->borrow_chunk_sms = from->borrow_chunk_sms;
    limits->borrow_chunks = from->borrow_chunks;
    for (unsigned i = 0; i < SERVER_MAX_DEVICES; i++)
        limits->memory_soft[i] = from->memory_soft[i];
    session_limits_set(limits, from);
}

static void set_joint(struct session_limits *limits, const struct server_limits *from)
{
    for (unsigned i = 0; i < JOINT_LIMITS; i++) {
        limits->joint_key[i] = from->joint[i].key;
        for (unsigned d = 0; d < SERVER_MAX_DEVICES; d++)
            limits->joint[i][d] = from->joint[i].memory[d];
    }
}

void session_limits_set(struct session_limits *limits, const struct server_limits *from)
{
    for (unsigned i = 0; i < SERVER_MAX_DEVICES; i++)
        limits->memory[i] = from->memory_limit[i];
    set_joint(limits, from);
    limits->oversubscribe = from->oversubscribe;
    limits->evict_after = from->evict_after;
    if (limits->sm_centipercent == from->sm_centipercent && limits->priority == from->priority &&
        limits->class == from->class)
        return;
    limits->class = from->class;
    limits->sm_centipercent = from->sm_centipercent;
    limits->priority = from->priority;
    atomic_fetch_or(&limits->changed, CHANGED_LIMITS);
}

static void get_joint(const struct session_limits *limits, struct server_limits *ret_limits)
{
    for (unsigned i = 0; i < JOINT_LIMITS; i++) {
        ret_limits->joint[i].key = limits->joint_key[i];
        for (unsigned d = 0; d < SERVER_MAX_DEVICES; d++)
            ret_limits->joint[i].memory[d] = limits->joint[i][d];
    }
}

struct server_limits session_limits_get(const struct session_limits *limits)
{
    struct server_limits result = {
        .sm_centipercent = limits->sm_centipercent,
        .priority = limits->priority,
        .fixed_device = limits->fixed_device,
        .fixed_first = limits->fixed_first,
        .fixed_count = limits->fixed_count,
        .fixed_only = limits->fixed_only,
        .totals_show_limit = limits->totals_show_limit,
        .class = limits->class,
        .oversubscribe = limits->oversubscribe,
        .evict_after = limits->evict_after,
        .may_borrow = limits->may_borrow,
        .borrow_chunk_sms = limits->borrow_chunk_sms,
        .borrow_chunks = limits->borrow_chunks,
    };

    for (unsigned i = 0; i < SERVER_MAX_DEVICES; i++) {
        result.memory_limit[i] = limits->memory[i];
        result.memory_soft[i] = limits->memory_soft[i];
    }
    get_joint(limits, &result);
    return result;
}

uint64_t session_limits_tightest(const struct session_limits *limits, unsigned device)
{
    uint64_t tightest = limits->memory[device];

    for (unsigned i = 0; i < JOINT_LIMITS; i++) {
        uint64_t joint = limits->joint[i][device];

        if (joint && (!tightest || joint < tightest))
            tightest = joint;
    }
    return tightest;
}

uint64_t session_limits_shown_total(const struct session_limits *limits, unsigned device,
                                    uint64_t total)
{
    uint64_t limit = limits->totals_show_limit ? session_limits_tightest(limits, device) : 0;

    return limit && limit < total ? limit : total;
}
