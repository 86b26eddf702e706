/* SPDX-License-Identifier: Apache-2.0 */
/* See state_json.h. */
#include "state_json.h"

#include <string.h>
#include <time.h>

#include "client_class.h"
#include "gpu_list.h"
#include "json_text.h"
#include "suspend_result.h"
#include "usage_history.h"
#include "user_name.h"

static void add_text(struct evbuffer *out, const char *name, const char *text, size_t size)
{
    evbuffer_add_printf(out, ",\"%s\":", name);
    json_text_add(out, text, size);
}

static void add_uuid(struct evbuffer *out, const struct server_device *device)
{
    char uuid[GPU_UUID_TEXT];

    gpu_uuid_text(device->uuid, uuid);
    evbuffer_add_printf(out, ",\"uuid\":\"%s\"", uuid);
}

static void add_device(struct evbuffer *out, const struct command_server *server, unsigned device)
{
    evbuffer_add_printf(out,
                        "%s{\"ordinal\":%u,\"sms\":%u,\"memory_total\":%llu,\"memory_free\":%llu",
                        device ? "," : "", device, server->devices[device].sm_count,
                        (unsigned long long)server->devices[device].memory_total,
                        (unsigned long long)server->memory_free[device]);
    add_text(out, "name", server->devices[device].name, sizeof(server->devices[device].name));
    add_uuid(out, &server->devices[device]);
    evbuffer_add(out, "}", 1);
}

/* Multiprocessors that the client had in the last two seconds; null while that is not known. */
static void add_sms_now(struct evbuffer *out, const struct status_report *report,
                        const struct server_status_row *row, unsigned device)
{
    const struct history_program *program = usage_history_find(report->server.pid, row);
    double sms =
        program ? usage_history_sms(program->serial, report->server.devices[device].uuid) : -1;

    if (sms < 0)
        evbuffer_add_printf(out, ",\"sms\":null");
    else
        evbuffer_add_printf(out, ",\"sms\":%.4g", sms);
}

static void add_client_device(struct evbuffer *out, const struct status_report *report,
                              const struct server_status_row *row, unsigned device,
                              const char *between)
{
    evbuffer_add_printf(
        out,
        "%s{\"ordinal\":%u,\"gpu_seconds\":%.6f,\"sm_seconds\":%.6f,\"sm_granted\":%u,"
        "\"memory\":%llu,\"memory_peak\":%llu,\"memory_swapped\":%llu,\"memory_limit\":%llu",
        between, device, (double)row->usage.gpu_ns[device] / 1e9,
        (double)row->usage.sm_ns[device] / 1e9, row->sm_granted[device],
        (unsigned long long)row->memory_used[device], (unsigned long long)row->memory_peak[device],
        (unsigned long long)row->memory_swapped[device],
        (unsigned long long)row->limits.memory_limit[device]);
    add_uuid(out, &report->server.devices[device]);
    add_sms_now(out, report, row, device);
    evbuffer_add(out, "}", 1);
}

static void add_client_devices(struct evbuffer *out, const struct status_report *report,
                               const struct server_status_row *row)
{
    const char *between = "";

    evbuffer_add_printf(out, ",\"devices\":[");
    for (unsigned i = 0; i < report->server.device_count; i++) {
        if (!(row->device_mask & 1ull << i))
            continue;
        add_client_device(out, report, row, i, between);
        between = ",";
    }
    evbuffer_add(out, "]", 1);
}

/* Its place in the history, which also has its color. */
static void add_program(struct evbuffer *out, const struct status_report *report,
                        const struct server_status_row *row)
{
    const struct history_program *program = usage_history_find(report->server.pid, row);

    if (program)
        evbuffer_add_printf(out, ",\"program\":%u,\"color\":%u", program->serial, program->color);
}

static const char *boolean(uint32_t value)
{
    return value ? "true" : "false";
}

/* Its waits, and the things that it was refused. */
static void add_troubles(struct evbuffer *out, const struct server_status_row *row)
{
    const char *obstacle = suspend_result_text((int)row->obstacle);

    evbuffer_add_printf(out,
                        ",\"call_ms\":%llu,\"stalls\":%llu,\"memory_refused\":%llu"
                        ",\"quota_refused\":%llu,\"suspended\":%s,\"evicted\":%s"
                        ",\"waits_for_room\":%s,\"evictions\":%llu",
                        (unsigned long long)row->call_ms, (unsigned long long)row->usage.stalls,
                        (unsigned long long)row->memory_refused,
                        (unsigned long long)row->quota_refused, boolean(row->suspended),
                        boolean(row->evicted), boolean(row->waits_for_room),
                        (unsigned long long)row->usage.evictions);
    if (row->obstacle && obstacle)
        add_text(out, "obstacle", obstacle, strlen(obstacle));
    add_text(out, "call", row->call, sizeof(row->call));
    add_text(out, "stall_cause", row->usage.stall_cause, sizeof(row->usage.stall_cause));
}

static void add_client(struct evbuffer *out, const struct status_report *report,
                       const struct server_status_row *row, bool is_operator)
{
    const struct server_usage *usage = &row->usage;
    const char *user = user_name(row->identity.uid);
    const char *class = client_class_name(row->limits.class);

    evbuffer_add_printf(out,
                        "{\"pid\":%d,\"id\":%u,\"since\":%lld,\"active\":%s,\"sm_percent\":%g,"
                        "\"priority\":%u,\"uid\":%u",
                        row->identity.pid, row->id, (long long)row->identity.since,
                        row->state == SERVER_CLIENT_ACTIVE ? "true" : "false",
                        row->limits.sm_centipercent / 100.0, row->limits.priority,
                        (unsigned)row->identity.uid);
    evbuffer_add_printf(out,
                        ",\"launches\":%llu,\"copied_bytes\":%llu,\"queued_seconds\":%.6f,"
                        "\"stalled_seconds\":%.3f,\"shared_seconds\":%.6f",
                        (unsigned long long)usage->launches,
                        (unsigned long long)server_usage_copied(usage),
                        (double)usage->queued_ns / 1e9, (double)usage->stalled_ms / 1e3,
                        (double)usage->shared_ns / 1e9);
    add_text(out, "class", class, strlen(class));
    add_text(out, "user", user, strlen(user));
    add_text(out, "group", row->identity.group, sizeof(row->identity.group));
    add_program(out, report, row);
    add_troubles(out, row);
    if (is_operator)
        add_text(out, "command", row->identity.command, sizeof(row->identity.command));
    add_client_devices(out, report, row);
    evbuffer_add(out, "}", 1);
}

static void add_server(struct evbuffer *out, const struct status_report *report, bool is_operator)
{
    const struct command_server *server = &report->server;

    evbuffer_add_printf(out, "{\"pid\":%d,\"responding\":%s", server->pid,
                        server->responding ? "true" : "false");
    add_text(out, "name", server->name, sizeof(server->name));
    add_text(out, "lane", server->lane, sizeof(server->lane));
    /* The sentence names a command line. */
    if (is_operator)
        add_text(out, "stall", server->stall, sizeof(server->stall));
    evbuffer_add_printf(out, ",\"stall_seconds\":%.1f,\"devices\":[", server->waited_ms / 1e3);
    for (unsigned i = 0; i < server->device_count; i++)
        add_device(out, server, i);
    evbuffer_add_printf(out, "],\"clients\":[");
    for (unsigned i = 0; i < report->client_count; i++) {
        evbuffer_add(out, ",", i > 0);
        add_client(out, report, &report->clients[i], is_operator);
    }
    evbuffer_add_printf(out, "]}");
}

/* The known values, by their names. */
static void add_sensors(struct evbuffer *out, const struct server_sensors *sensors)
{
    for (unsigned i = 0; i < SENSOR_COUNT; i++)
        if (sensor_value(sensors, i) >= 0)
            evbuffer_add_printf(out, ",\"%s\":%.15g", sensor_rows[i].name,
                                sensor_value(sensors, i));
}

/* Once each, however many servers share it. What is not known is null. */
static void add_gpu(struct evbuffer *out, const struct gpu_figures *gpu)
{
    const struct server_device *device = gpu->device;
    double sms = usage_history_gpu_sms(device->uuid);

    evbuffer_add_printf(out, "{\"multiprocessors\":%u,\"memory_total\":%llu", device->sm_count,
                        (unsigned long long)device->memory_total);
    if (gpu->is_known)
        evbuffer_add_printf(out, ",\"memory_free\":%llu", (unsigned long long)gpu->memory_free);
    else
        evbuffer_add_printf(out, ",\"memory_free\":null");
    if (sms < 0)
        evbuffer_add_printf(out, ",\"sms\":null");
    else
        evbuffer_add_printf(out, ",\"sms\":%.4g", sms);
    add_uuid(out, device);
    add_text(out, "name", device->name, sizeof(device->name));
    add_text(out, "pci_bus_id", device->pci_bus_id, sizeof(device->pci_bus_id));
    add_sensors(out, &gpu->sensors);
    evbuffer_add(out, "}", 1);
}

static void add_gpus(struct evbuffer *out, const struct status_query *query)
{
    struct gpu_list list;

    gpu_list_read(query, &list);
    evbuffer_add_printf(out, "\"gpus\":[");
    for (unsigned i = 0; i < list.count; i++) {
        evbuffer_add(out, ",", i > 0);
        add_gpu(out, &list.gpus[i]);
    }
    evbuffer_add(out, "]", 1);
}

void state_json_add(struct evbuffer *out, const struct daemon *daemon,
                    const struct status_query *query, bool is_operator)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    evbuffer_add_printf(out,
                        "{\"time\":%.3f,\"version\":\"%s\",\"since\":%lld,\"waiting\":%u,"
                        "\"operator\":%s,",
                        (double)now.tv_sec + (double)now.tv_nsec / 1e9, FUNNEL_VERSION,
                        (long long)daemon->since, daemon->waiting_clients,
                        is_operator ? "true" : "false");
    add_gpus(out, query);
    evbuffer_add_printf(out, ",\"servers\":[");
    for (unsigned i = 0; i < query->report_count; i++) {
        evbuffer_add(out, ",", i > 0);
        add_server(out, &query->reports[i], is_operator);
    }
    evbuffer_add_printf(out, "]}");
}
