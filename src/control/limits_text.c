/* SPDX-License-Identifier: Apache-2.0 */
/* See limits_text.h. */
#include "limits_text.h"

#include <string.h>

#include "client_class.h"
#include "text.h"

static void append_text(char *text, size_t capacity, const char *more)
{
    size_t used = strlen(text);

    text_copy(text + used, capacity - used, more);
}

static void describe_share(const struct server_limits *limits, char *text, size_t capacity)
{
    if (limits->fixed_count)
        text_format(text, capacity, "a static partition of %u SMs on device %u",
                    limits->fixed_count, limits->fixed_device);
    else if (limits->fixed_only)
        text_copy(text, capacity, "no context, being in no static partition");
    else
        text_format(text, capacity, "%u.%u %% of the SMs", limits->sm_centipercent / 100,
                    limits->sm_centipercent % 100 / 10);
}

static void append_memory(char *text, const char *what, uint64_t limit, unsigned device)
{
    char part[96];

    if (!limit)
        return;
    text_format(part, sizeof(part), ", %s %llu MiB of device %u", what,
                (unsigned long long)(limit >> 20), device);
    append_text(text, LIMITS_TEXT_MAX, part);
}

static void append_joint(char *text, const struct server_limits *limits, unsigned device_count)
{
    static const char *const whose[] = {[JOINT_USER] = "with all of its user at most",
                                        [JOINT_GROUP] = "with all of its group at most",
                                        [JOINT_CONTAINER] = "with all of its container at most",
                                        [JOINT_CONTROL_GROUP] =
                                            "with all of its control group at most"};

    for (unsigned i = 0; i < JOINT_LIMITS; i++)
        for (unsigned d = 0; d < device_count && d < SERVER_MAX_DEVICES; d++)
            append_memory(text, whose[i], limits->joint[i].memory[d], d);
}

void limits_describe(const struct server_limits *limits, unsigned device_count,
                     char ret_text[LIMITS_TEXT_MAX])
{
    char part[64];

    describe_share(limits, ret_text, LIMITS_TEXT_MAX);
    append_text(ret_text, LIMITS_TEXT_MAX,
                limits->priority ? ", below normal priority" : ", normal priority");
    if (limits->class == CLASS_CRITICAL || limits->class == CLASS_BATCH) {
        text_format(part, sizeof(part), ", class %s", client_class_name(limits->class));
        append_text(ret_text, LIMITS_TEXT_MAX, part);
    }
    for (unsigned i = 0; i < device_count && i < SERVER_MAX_DEVICES; i++) {
        append_memory(ret_text, "at most", limits->memory_limit[i], i);
        append_memory(ret_text, "a soft limit of", limits->memory_soft[i], i);
    }
    append_joint(ret_text, limits, device_count);
    if (limits->may_borrow)
        append_text(ret_text, LIMITS_TEXT_MAX, ", may borrow SMs of others that rest");
    if (limits->oversubscribe)
        append_text(ret_text, LIMITS_TEXT_MAX, ", memory that makes room for others");
    if (limits->evict_after) {
        text_format(part, sizeof(part), ", evicted after %u s of rest", limits->evict_after);
        append_text(ret_text, LIMITS_TEXT_MAX, part);
    }
    if (limits->totals_show_limit)
        append_text(ret_text, LIMITS_TEXT_MAX, ", totals that show the limit");
}

static void append_named(char *text, const char *what, const char *name, size_t size)
{
    char part[96];

    if (!*name || !text_ended(name, size))
        return;
    text_format(part, sizeof(part), ", %s %s", what, name);
    append_text(text, IDENTITY_TEXT_MAX, part);
}

void identity_describe(const struct server_identity *identity, char ret_text[IDENTITY_TEXT_MAX])
{
    text_format(ret_text, IDENTITY_TEXT_MAX, "user %u", identity->uid);
    append_named(ret_text, "group", identity->group, sizeof(identity->group));
    append_named(ret_text, "namespace", identity->space, sizeof(identity->space));
    append_text(ret_text, IDENTITY_TEXT_MAX, ": ");
    if (text_ended(identity->command, sizeof(identity->command)))
        append_text(ret_text, IDENTITY_TEXT_MAX, identity->command);
}
