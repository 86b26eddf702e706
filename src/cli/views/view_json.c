/* SPDX-License-Identifier: Apache-2.0 */
/* See view_json.h. */
#include "view_json.h"

#include <string.h>

#include "client_class.h"
#include "json_output.h"
#include "suspend_result.h"
#include "text.h"
#include "view_text.h"
#ifdef HAVE_JANSSON
#include <jansson.h>

/* Text of other processes may be anything; JSON wants UTF-8. */
static json_t *text_value(const char *text, size_t capacity)
{
    size_t length = strnlen(text, capacity);
    json_t *value = json_stringn(text, length);

    return value ? value : json_string("(not UTF-8)");
}

/* null where the device does not tell. */
static json_t *sensor_json(const struct server_sensors *sensors, enum sensor sensor)
{
    double value = sensor_value(sensors, sensor);

    if (value < 0)
        return json_null();
    return sensor_rows[sensor].scale < 1 ? json_real(value) : json_integer((json_int_t)value);
}

static json_t *device_json(const struct command_server *server, unsigned ordinal)
{
    const struct server_device *device = &server->devices[ordinal];
    char uuid[GPU_UUID_TEXT];

    device_uuid_text(device, uuid);
    json_t *json =
        json_pack("{s:i, s:s, s:i, s:s, s:o, s:o, s:i, s:I, s:I, s:[i, i]}", "server", server->pid,
                  "server_name", server->name, "ordinal", ordinal, "uuid", uuid, "name",
                  text_value(device->name, sizeof(device->name)), "pci_bus_id",
                  text_value(device->pci_bus_id, sizeof(device->pci_bus_id)), "sm_count",
                  device->sm_count, "memory_total", (json_int_t)device->memory_total, "memory_free",
                  (json_int_t)server->memory_free[ordinal], "compute_capability",
                  device->compute_major, device->compute_minor);

    for (unsigned i = 0; i < SENSOR_COUNT; i++)
        json_object_set_new(json, sensor_rows[i].name, sensor_json(&server->sensors[ordinal], i));
    return json;
}

static json_t *devices_json(const struct snapshot *snapshot)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < snapshot->server_count; i++)
        for (unsigned d = 0; d < snapshot->servers[i].device_count; d++)
            json_array_append_new(list, device_json(&snapshot->servers[i], d));
    return list;
}

/* The user by name, and the share as people write it: 12.5. */
static json_t *with_user_and_share(json_t *json, uint32_t uid, uint32_t centipercent)
{
    char user[VIEW_CELL];

    view_format_user(uid, user);
    json_object_set_new(json, "user", text_value(user, sizeof(user)));
    json_object_set_new(json, "sm_percent", json_real(centipercent / 100.0));
    return json;
}

/* null where there is none. */
static json_t *code_cache_json(const struct server_code_cache *cache)
{
    if (!*cache->path)
        return json_null();
    return json_pack("{s:o, s:I, s:I, s:I, s:I}", "path",
                     text_value(cache->path, sizeof(cache->path)), "entries",
                     (json_int_t)cache->entries, "bytes", (json_int_t)cache->bytes, "loaded",
                     (json_int_t)cache->loaded, "used", (json_int_t)cache->used);
}

static json_t *server_json(const struct command_server *server)
{
    json_t *json = json_pack(
        "{s:s, s:s, s:i, s:I, s:s, s:s, s:i, s:i, s:i, s:i, s:I, s:i, s:i, s:I, s:I, s:o, s:i, "
        "s:b, "
        "s:I, s:o, s:o, s:b, s:I, s:I, s:I}",
        "name", server->name, "pipe_directory", server->directory, "pid", server->pid, "uid",
        (json_int_t)server->uid, "state", snapshot_state_name(server), "driver",
        snapshot_driver_name(server->driver), "driver_version", server->driver_version, "devices",
        server->device_count, "clients", server->client_count, "max_clients", server->max_clients,
        "since", (json_int_t)server->since, "sm_centipercent", server->sm_centipercent, "priority",
        server->priority, "silent_ms", (json_int_t)server->silent_ms, "waited_ms",
        (json_int_t)server->waited_ms, "stall", text_value(server->stall, sizeof(server->stall)),
        "standby_pid", server->standby_pid, "standby_ready", (int)server->standby_ready,
        "standby_memory", (json_int_t)server->standby_mib << 20, "code_cache",
        code_cache_json(&server->code_cache), "lane",
        text_value(server->lane, sizeof(server->lane)), "time_slices_refused",
        (int)server->slices_refused, "swap_locked", (json_int_t)server->swap_locked, "swap_used",
        (json_int_t)server->swap_used, "swap_kept", (json_int_t)server->swap_kept);

    return with_user_and_share(json, server->uid, server->sm_centipercent);
}

static json_t *servers_json(const struct snapshot *snapshot)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < snapshot->server_count; i++)
        json_array_append_new(list, server_json(&snapshot->servers[i]));
    return list;
}

/* A limit that is not set is null, and not 0. */
static json_t *limit_or_null(uint64_t bytes)
{
    return bytes ? json_integer((json_int_t)bytes) : json_null();
}

static json_t *seconds_json(uint64_t ns)
{
    return json_real((double)ns / 1e9);
}

/* One entry for each device that the client uses. */
static json_t *client_devices_json(const struct snapshot *snapshot,
                                   const struct command_client *client)
{
    const struct command_server *server = snapshot_server_of(snapshot, client);
    const struct server_status_row *row = &client->row;
    json_t *list = json_array();
    char uuid[GPU_UUID_TEXT];

    for (unsigned d = 0; d < server->device_count; d++) {
        if (!(row->device_mask & (1ull << d)))
            continue;
        device_uuid_text(&server->devices[d], uuid);
        json_array_append_new(
            list, json_pack("{s:i, s:s, s:i, s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "ordinal", d,
                            "uuid", uuid, "sm_granted", row->sm_granted[d], "memory_used",
                            (json_int_t)row->memory_used[d], "memory_peak",
                            (json_int_t)row->memory_peak[d], "memory_swapped",
                            (json_int_t)row->memory_swapped[d], "memory_limit",
                            limit_or_null(row->limits.memory_limit[d]), "memory_soft",
                            limit_or_null(row->limits.memory_soft[d]), "gpu_seconds",
                            seconds_json(row->usage.gpu_ns[d]), "sm_seconds",
                            seconds_json(row->usage.sm_ns[d])));
    }
    return list;
}

static uint64_t sum(const uint64_t values[SERVER_MAX_DEVICES])
{
    uint64_t total = 0;

    for (unsigned i = 0; i < SERVER_MAX_DEVICES; i++)
        total += values[i];
    return total;
}

/* The names stand in docs/accounting.md. */
static json_t *usage_json(const struct server_usage *usage)
{
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:I, s:I, "
        "s:I}",
        "gpu_seconds", seconds_json(sum(usage->gpu_ns)), "sm_seconds",
        seconds_json(sum(usage->sm_ns)), "shared_seconds", seconds_json(usage->shared_ns),
        "copy_seconds", seconds_json(usage->copy_ns), "queued_seconds",
        seconds_json(usage->queued_ns), "mean_wait_seconds", seconds_json(usage->wait_ns),
        "queue_bytes", (json_int_t)usage->queue_bytes, "launches", (json_int_t)usage->launches,
        "copies", (json_int_t)usage->copies, "copied_to_device_bytes", (json_int_t)usage->copied_up,
        "copied_from_device_bytes", (json_int_t)usage->copied_down, "copied_within_bytes",
        (json_int_t)usage->copied_within, "stalls", (json_int_t)usage->stalls, "stalled_seconds",
        json_real((double)usage->stalled_ms / 1e3), "stall_cause",
        text_value(usage->stall_cause, sizeof(usage->stall_cause)), "evictions",
        (json_int_t)usage->evictions, "swapped_out_bytes", (json_int_t)usage->swapped_out,
        "swapped_in_bytes", (json_int_t)usage->swapped_in);
}

/* By the names of the quotas, as JSON's names are written: host_memory. */
static json_t *held_json(const struct server_status_row *row)
{
    json_t *json = json_object();
    char name[32];

    for (unsigned i = 0; i < QUOTA_HELD_COUNT; i++) {
        text_copy(name, sizeof(name), quota_rows[i].name);
        for (char *letter = name; *letter; letter++)
            *letter = *letter == '-' ? '_' : *letter;
        json_object_set_new(json, name, json_integer((json_int_t)row->held[i]));
    }
    return json;
}

/* Why it made no room for others; NULL when it has not been asked, or has left. */
static const char *obstacle_text(const struct server_status_row *row)
{
    return row->obstacle ? suspend_result_text((int)row->obstacle) : NULL;
}

static json_t *client_json(const struct snapshot *snapshot, const struct command_client *client)
{
    const struct server_status_row *row = &client->row;
    json_t *json = json_pack(
        "{s:i, s:I, s:I, s:i, s:s, s:s, s:o, s:o, s:I, s:s, s:i, s:i, s:I, s:I, s:I, s:I, s:I, "
        "s:o, s:o, s:o, s:I, s:o, s:I, s:s, s:o, s:b, s:b, s:b, s:b, s:s?, s:o, s:o, s:f}",
        "pid", row->identity.pid, "id", (json_int_t)row->id, "uid", (json_int_t)row->identity.uid,
        "server", client->server_pid, "server_name", snapshot_server_of(snapshot, client)->name,
        "namespace", row->identity.space, "command",
        text_value(row->identity.command, sizeof(row->identity.command)), "group",
        text_value(row->identity.group, sizeof(row->identity.group)), "since",
        (json_int_t)row->identity.since, "state",
        row->state == SERVER_CLIENT_ACTIVE ? "active" : "inactive", "sm_centipercent",
        row->limits.sm_centipercent, "priority", row->limits.priority, "memory_used",
        (json_int_t)snapshot_memory_of(client), "memory_refused", (json_int_t)row->memory_refused,
        "launches", (json_int_t)row->usage.launches, "copies", (json_int_t)row->usage.copies,
        "copied_bytes", (json_int_t)server_usage_copied(&row->usage), "usage",
        usage_json(&row->usage), "devices", client_devices_json(snapshot, client), "call",
        text_value(row->call, sizeof(row->call)), "call_ms", (json_int_t)row->call_ms, "held",
        held_json(row), "quota_refused", (json_int_t)row->quota_refused, "class",
        client_class_name(row->limits.class), "lane",
        text_value(snapshot_server_of(snapshot, client)->lane,
                   sizeof(snapshot_server_of(snapshot, client)->lane)),
        "suspended", (int)row->suspended, "evicted", (int)row->evicted, "oversubscribes",
        (int)row->limits.oversubscribe, "waits_for_room", (int)row->waits_for_room, "obstacle",
        obstacle_text(row), "evict_after", limit_or_null(row->limits.evict_after), "container",
        text_value(row->identity.container, sizeof(row->identity.container)), "rests_seconds",
        (double)row->rests_ms / 1e3);

    return with_user_and_share(json, row->identity.uid, row->limits.sm_centipercent);
}

static json_t *clients_json(const struct snapshot *snapshot)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < snapshot->client_count; i++)
        json_array_append_new(list, client_json(snapshot, &snapshot->clients[i]));
    return list;
}

/* By number and name. */
static void set_user(json_t *json, uint32_t uid)
{
    char user[VIEW_CELL];

    view_format_user(uid, user);
    json_object_set_new(json, "uid", json_integer(uid));
    json_object_set_new(json, "user", text_value(user, sizeof(user)));
}

static json_t *limit_json(const struct command_limit *limit)
{
    static const char *const scopes[] = {"daemon", "server", "namespace", "user", "group"};
    json_t *json = json_pack("{s:s}", "scope", scopes[limit->scope % 5]);

    if (limit->scope == COMMAND_SCOPE_USER)
        set_user(json, limit->uid);
    else if (*limit->name)
        json_object_set_new(json, limit->scope == COMMAND_SCOPE_GROUP ? "group" : "server",
                            json_string(limit->name));
    if (*limit->space)
        json_object_set_new(json, "namespace", json_string(limit->space));
    if (limit->sm_centipercent) {
        json_object_set_new(json, "sm_centipercent", json_integer(limit->sm_centipercent));
        json_object_set_new(json, "sm_percent", json_real(limit->sm_centipercent / 100.0));
    }
    if (limit->sms)
        json_object_set_new(json, "sms", json_integer(limit->sms));
    if (limit->sets_priority)
        json_object_set_new(json, "priority", json_integer(limit->priority));
    if (limit->class)
        json_object_set_new(json, "class", json_string(client_class_name(limit->class)));
    if (limit->sets_oversubscribe)
        json_object_set_new(json, "oversubscribe", json_boolean(limit->oversubscribe));
    if (limit->sets_memory)
        json_object_set_new(json, "memory_limit", json_integer((json_int_t)limit->memory));
    if (limit->sets_evict_after)
        json_object_set_new(json, "evict_after", json_integer(limit->evict_after));
    if (limit->sets_joint)
        json_object_set_new(json, "joint_memory_limit", json_integer((json_int_t)limit->joint));
    if (*limit->joint_device)
        json_object_set_new(json, "joint_device",
                            text_value(limit->joint_device, sizeof(limit->joint_device)));
    if (*limit->device)
        json_object_set_new(json, "device", text_value(limit->device, sizeof(limit->device)));
    return json;
}

static json_t *quotas_json(const struct snapshot *snapshot)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < snapshot->quota_count; i++) {
        const struct command_quota *row = &snapshot->quotas[i];

        json_array_append_new(list,
                              json_pack("{s:o, s:o, s:s, s:I, s:I}", "name",
                                        text_value(row->name, sizeof(row->name)), "owner",
                                        text_value(row->owner, sizeof(row->owner)), "unit",
                                        quota_unit_name(row->unit), "value", (json_int_t)row->value,
                                        "default", (json_int_t)row->initial));
    }
    return list;
}

/* A key is there where something is set. */
static json_t *limits_json(const struct snapshot *snapshot)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < snapshot->limit_count; i++)
        json_array_append_new(list, limit_json(&snapshot->limits[i]));
    return json_pack("{s:o, s:o, s:o}", "limits", list, "quotas", quotas_json(snapshot), "clients",
                     clients_json(snapshot));
}

static json_t *status_json(const struct snapshot *snapshot, const struct paths *paths)
{
    const struct command_daemon *daemon = &snapshot->daemon;

    return json_pack(
        "{s:i, s:I, s:o, s:I, s:o, s:s, s:o, s:i, s:b, s:b, s:b, s:o, s:o, s:o, s:o}", "pid",
        daemon->pid, "uid", (json_int_t)daemon->uid, "version",
        text_value(daemon->version, sizeof(daemon->version)), "since", (json_int_t)daemon->since,
        "device", text_value(daemon->device, sizeof(daemon->device)), "pipe_directory", paths->pipe,
        "log_directory", text_value(daemon->log_directory, sizeof(daemon->log_directory)),
        "waiting", daemon->waiting, "quitting", daemon->quitting != 0, "multiuser",
        daemon->multiuser != 0, "static_partitioning", daemon->static_partitioning != 0, "servers",
        servers_json(snapshot), "devices", devices_json(snapshot), "clients",
        clients_json(snapshot), "quotas", quotas_json(snapshot));
}

static json_t *make_json(const struct snapshot *snapshot, const struct paths *paths,
                         enum json_view view)
{
    switch (view) {
    case JSON_STATUS:
        return status_json(snapshot, paths);
    case JSON_CLIENTS:
        return clients_json(snapshot);
    case JSON_SERVERS:
        return servers_json(snapshot);
    case JSON_DEVICES:
        return devices_json(snapshot);
    case JSON_LIMITS:
        return limits_json(snapshot);
    }
    return NULL;
}

int view_json(const struct snapshot *snapshot, const struct paths *paths, enum json_view view)
{
    return json_output(make_json(snapshot, paths, view));
}

#else

int view_json(const struct snapshot *snapshot, const struct paths *paths, enum json_view view)
{
    return json_output(NULL);
}

#endif
