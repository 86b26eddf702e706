/* SPDX-License-Identifier: Apache-2.0 */
/* See client_limits.h. */
#include "client_limits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "joint_ledger.h"
#include "text.h"

static struct device_limit *find_limit(const struct limits *limits, const char *device)
{
    for (unsigned i = 0; i < limits->device_count; i++)
        if (!strcasecmp(limits->devices[i].device, device))
            return (struct device_limit *)&limits->devices[i];
    return NULL;
}

static void forget_limit(struct limits *limits, struct device_limit *old)
{
    struct device_limit *end = limits->devices + limits->device_count;

    memmove(old, old + 1, (size_t)((char *)end - (char *)(old + 1)));
    limits->device_count--;
}

int limits_set_memory(struct limits *limits, const char *device, uint64_t bytes, const char *text)
{
    struct device_limit *old = find_limit(limits, device);
    struct device_limit *limit;

    if (old)
        forget_limit(limits, old);
    if (bytes == 0)
        return 0;
    if (limits->device_count == DEVICE_LIMITS_MAX)
        return -ENOSPC;
    limit = &limits->devices[limits->device_count++];
    text_copy(limit->device, sizeof(limit->device), device);
    text_copy(limit->text, sizeof(limit->text), text);
    limit->bytes = bytes;
    return 0;
}

const char *limits_memory_text(const struct limits *limits, const char *device)
{
    const struct device_limit *limit = find_limit(limits, device);

    return limit ? limit->text : NULL;
}

/* An ordinal, a whole UUID, or the beginning of one. */
bool device_is_named(const char *name, const struct server_device *device, unsigned ordinal)
{
    char uuid[GPU_UUID_TEXT];
    uint64_t number;

    if (!text_to_u64(name, &number))
        return number == ordinal;
    device_uuid_text(device, uuid);
    return strlen(name) > strlen("GPU-") && !strncasecmp(uuid, name, strlen(name));
}

static uint64_t tighter(uint64_t a, uint64_t b)
{
    if (a == 0 || b == 0)
        return a ? a : b;
    return a < b ? a : b;
}

static uint64_t memory_limit_of(const struct limits *limits, const struct server_device *device,
                                unsigned ordinal)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < limits->device_count; i++)
        if (device_is_named(limits->devices[i].device, device, ordinal))
            bytes = limits->devices[i].bytes;
    return bytes;
}

/* The memory limit that the client asks for itself on a device, by number or by name. */
static uint64_t requested_memory(const struct hello *hello, const struct server_device *device,
                                 unsigned ordinal)
{
    uint64_t bytes = hello->memory_limit[ordinal];

    for (unsigned i = 0; i < HELLO_NAMED_LIMITS; i++) {
        const struct hello_named_limit *limit = &hello->named_limits[i];

        if (memchr(limit->device, '\0', sizeof(limit->device)) && *limit->device &&
            device_is_named(limit->device, device, ordinal))
            bytes = tighter(bytes, limit->bytes);
    }
    return bytes;
}

void limits_of_server(const struct limits *server, uint32_t priority,
                      const struct server_ready *ready, struct server_limits *ret_limits)
{
    memset(ret_limits, 0, sizeof(*ret_limits));
    ret_limits->sm_centipercent = server->sm_centipercent;
    ret_limits->priority = priority;
    ret_limits->totals_show_limit = server->totals_show_limit;
    ret_limits->may_borrow = server->lend;
    ret_limits->oversubscribe = server->oversubscribe;
    ret_limits->evict_after = server->evict_after;
    for (unsigned i = 0; i < ready->device_count; i++)
        ret_limits->memory_limit[i] = memory_limit_of(server, &ready->devices[i], i);
}

void limits_tighten(struct server_limits *limits, const struct hello *hello,
                    const struct server_ready *ready)
{
    limits->sm_centipercent = (uint32_t)tighter(limits->sm_centipercent, hello->sm_centipercent);
    if (hello->priority <= 1)
        limits->priority = hello->priority;
    if (hello->totals == HELLO_TOTALS_LIMIT || hello->totals == HELLO_TOTALS_DEVICE)
        limits->totals_show_limit = hello->totals == HELLO_TOTALS_LIMIT;
    for (unsigned i = 0; i < ready->device_count; i++)
        limits->memory_limit[i] =
            tighter(limits->memory_limit[i], requested_memory(hello, &ready->devices[i], i));
}

/* ---- changes ---- */

uint32_t centipercent_of_sms(unsigned sms, unsigned total)
{
    uint32_t share = total ? (uint32_t)(((uint64_t)sms * 10000 + total - 1) / total) : 10000;

    return share < 10000 ? share : 10000;
}

void limit_change_apply(const struct limit_change *change, const struct server_ready *ready,
                        struct server_limits *limits)
{
    if (change->lifts_share)
        limits->sm_centipercent = 10000;
    if (change->sm_centipercent && !limits->fixed_only)
        limits->sm_centipercent = change->sm_centipercent;
    if (change->sms && ready->device_count && !limits->fixed_only)
        limits->sm_centipercent = centipercent_of_sms(change->sms, ready->devices[0].sm_count);
    if (change->sets_priority)
        limits->priority = change->priority;
    if (change->sets_totals)
        limits->totals_show_limit = change->totals_show_limit;
    if (change->sets_lend)
        limits->may_borrow = change->lend;
    if (change->sets_oversubscribe)
        limits->oversubscribe = change->oversubscribe;
    if (change->sets_evict_after)
        limits->evict_after = change->evict_after;
    for (unsigned i = 0; change->sets_memory && i < ready->device_count; i++)
        if (!*change->device || device_is_named(change->device, &ready->devices[i], i))
            limits->memory_limit[i] = change->memory;
}

static bool has_memory(const struct joint_limit *limit)
{
    for (unsigned i = 0; i < SERVER_MAX_DEVICES; i++)
        if (limit->memory[i])
            return true;
    return false;
}

void limit_change_apply_joint(const struct limit_change *change, enum joint_limits limit,
                              const struct server_identity *identity,
                              const struct server_ready *ready, struct server_limits *limits)
{
    struct joint_limit *joint = &limits->joint[limit];

    for (unsigned i = 0; change->sets_joint && i < ready->device_count; i++)
        if (!*change->joint_device || device_is_named(change->joint_device, &ready->devices[i], i))
            joint->memory[i] = change->joint;
    joint->key = has_memory(joint)
                     ? joint_key(identity->uid, limit == JOINT_GROUP ? identity->group : "")
                     : 0;
}

struct own_limits own_limits_of(const struct server_limits *limits)
{
    struct own_limits own = {.sm_centipercent = limits->sm_centipercent,
                             .priority = limits->priority,
                             .oversubscribe = limits->oversubscribe,
                             .evict_after = limits->evict_after};

    memcpy(own.memory, limits->memory_limit, sizeof(own.memory));
    return own;
}

void own_limits_apply(const struct own_limits *own, struct server_limits *limits)
{
    limits->sm_centipercent = own->sm_centipercent;
    limits->priority = own->priority;
    limits->oversubscribe = own->oversubscribe;
    limits->evict_after = own->evict_after;
    memcpy(limits->memory_limit, own->memory, sizeof(own->memory));
}

void limits_join_container(struct server_limits *limits, const struct hello *hello,
                           const struct server_identity *identity, const struct server_ready *ready)
{
    struct joint_limit *joint = &limits->joint[JOINT_CONTAINER];

    if (hello->limits_container != 1 || !*identity->container)
        return;
    for (unsigned i = 0; i < ready->device_count; i++)
        joint->memory[i] = requested_memory(hello, &ready->devices[i], i);
    joint->key = has_memory(joint) ? joint_key(identity->uid, identity->container) : 0;
}
