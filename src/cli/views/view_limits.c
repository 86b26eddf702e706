/* SPDX-License-Identifier: Apache-2.0 */
/* See view_limits.h. */
#include "view_limits.h"

#include <stdio.h>
#include <string.h>

#include "client_class.h"
#include "text.h"
#include "view_text.h"

#define CELL VIEW_CELL
#define WHO (2 * SERVER_NAME_MAX)

static void format_who(const struct command_limit *limit, char who[WHO])
{
    char user[VIEW_CELL];

    switch (limit->scope) {
    case COMMAND_SCOPE_SERVER:
        text_format(who, WHO, "server %s", limit->name);
        break;
    case COMMAND_SCOPE_NAMESPACE:
        text_format(who, WHO, "namespace %.72s/%.72s", limit->name, limit->space);
        break;
    case COMMAND_SCOPE_USER:
        view_format_user(limit->uid, user);
        text_format(who, WHO, "user %s", user);
        break;
    case COMMAND_SCOPE_GROUP:
        text_format(who, WHO, "group %s", limit->name);
        break;
    default:
        text_copy(who, WHO, "default");
    }
}

static void format_share(const struct command_limit *limit, char cell[CELL])
{
    if (limit->sms)
        text_format(cell, CELL, "%u", limit->sms);
    else if (limit->sm_centipercent)
        text_format(cell, CELL, "%g%%", limit->sm_centipercent / 100.0);
    else
        text_copy(cell, CELL, "-");
}

static void format_memory(bool is_set, uint64_t bytes, char cell[CELL])
{
    if (!is_set)
        text_copy(cell, CELL, "-");
    else if (bytes)
        view_format_bytes(bytes, cell);
    else
        text_copy(cell, CELL, "none");
}

/* "each", or the one that the limits are about. */
static const char *device_of(const struct command_limit *limit)
{
    if (*limit->device || *limit->joint_device)
        return *limit->device ? limit->device : limit->joint_device;
    return limit->sets_memory || limit->sets_joint ? "each" : "-";
}

static void format_evict_after(const struct command_limit *limit, char cell[CELL])
{
    if (!limit->sets_evict_after)
        text_copy(cell, CELL, "-");
    else if (limit->evict_after)
        text_format(cell, CELL, "%u s", limit->evict_after);
    else
        text_copy(cell, CELL, "never");
}

static const char *priority_name(uint32_t priority)
{
    return priority ? "below normal" : "normal";
}

static void print_limit(const struct command_limit *limit)
{
    char who[WHO], share[CELL], memory[CELL], joint[CELL], evicted[CELL];

    format_who(limit, who);
    format_share(limit, share);
    format_memory(limit->sets_memory, limit->memory, memory);
    format_memory(limit->sets_joint, limit->joint, joint);
    format_evict_after(limit, evicted);
    printf("%-28s %-8s %-10s %-10s %-8.*s %-13s %-15s %-13s %s\n", who, share, memory, joint,
           (int)sizeof(limit->device), device_of(limit),
           limit->sets_priority ? priority_name(limit->priority) : "-",
           !limit->sets_oversubscribe ? "-"
           : limit->oversubscribe     ? "yes"
                                      : "no",
           evicted, limit->class ? client_class_name(limit->class) : "-");
}

/* "32 of 132", and whether they belong to this client alone. */
static void format_granted(const struct command_client *client, const struct command_server *server,
                           unsigned device, char cell[CELL])
{
    const struct server_limits *limits = &client->row.limits;
    bool fixed = limits->fixed_count && limits->fixed_device == device;

    text_format(cell, CELL, "%u of %u%s", client->row.sm_granted[device],
                server->devices[device].sm_count, fixed ? ", its own" : "");
}

static void print_granted(const struct command_client *client, const struct command_server *server,
                          unsigned device)
{
    const struct server_status_row *row = &client->row;
    char sms[CELL], used[CELL], most[CELL] = "-", soft[CELL] = "-";

    format_granted(client, server, device, sms);
    view_format_bytes(row->memory_used[device], used);
    if (row->limits.memory_limit[device])
        view_format_bytes(row->limits.memory_limit[device], most);
    if (row->limits.memory_soft[device])
        view_format_bytes(row->limits.memory_soft[device], soft);
    printf("%-8d %-12s %-7u %-20s %-10s %-10s %-10s %-13s %.*s\n", row->identity.pid, server->name,
           device, sms, used, most, soft, priority_name(row->limits.priority),
           (int)sizeof(row->identity.command), row->identity.command);
}

/* Of the devices that it uses; of the first one before it uses any. */
static void print_client(const struct snapshot *snapshot, const struct command_client *client)
{
    const struct command_server *server = snapshot_server_of(snapshot, client);
    uint64_t mask = client->row.device_mask ? client->row.device_mask : 1;

    for (unsigned device = 0; device < server->device_count; device++)
        if (mask & (1ull << device))
            print_granted(client, server, device);
}

/* ---- quotas ---- */

static void print_quota(const struct command_quota *row)
{
    char now[QUOTA_TEXT_MAX], initial[QUOTA_TEXT_MAX];
    const char *about = "";

    for (unsigned i = 0; i < QUOTA_COUNT; i++)
        if (!strcmp(quota_rows[i].name, row->name))
            about = quota_rows[i].about;
    quota_value_text(row->unit, row->value, now);
    quota_value_text(row->unit, row->initial, initial);
    printf("%-14.*s %-7.*s %-12s %-12s %-10s %s\n", (int)sizeof(row->name), row->name,
           (int)sizeof(row->owner), row->owner, now, initial, quota_unit_name(row->unit), about);
}

static void print_quotas(const struct snapshot *snapshot)
{
    if (snapshot->quota_count == 0)
        return;
    printf("\n%-14s %-7s %-12s %-12s %-10s %s\n", "QUOTA", "OF A", "VALUE", "DEFAULT", "UNIT",
           "WHAT IT BOUNDS");
    for (unsigned i = 0; i < snapshot->quota_count; i++)
        print_quota(&snapshot->quotas[i]);
}

void view_limits(const struct snapshot *snapshot)
{
    printf("%-28s %-8s %-10s %-10s %-8s %-13s %-15s %-13s %s\n", "LIMITS OF", "SMS", "MEMORY",
           "JOINTLY", "DEVICE", "PRIORITY", "OVERSUBSCRIBED", "EVICTED AFTER", "CLASS");
    for (unsigned i = 0; i < snapshot->limit_count; i++)
        print_limit(&snapshot->limits[i]);
    print_quotas(snapshot);
    if (snapshot->client_count == 0)
        return;
    printf("\n%-8s %-12s %-7s %-20s %-10s %-10s %-10s %-13s %s\n", "PID", "SERVER", "DEVICE", "SMS",
           "MEMORY", "LIMIT", "SOFT", "PRIORITY", "COMMAND");
    for (unsigned i = 0; i < snapshot->client_count; i++)
        print_client(snapshot, &snapshot->clients[i]);
}
