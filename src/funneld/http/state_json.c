/* SPDX-License-Identifier: Apache-2.0 */
/* See state_json.h. */
#include "state_json.h"

#include <string.h>
#include <time.h>

#include "json_text.h"
#include "user_name.h"

static void add_text(struct evbuffer *out, const char *name, const char *text, size_t size)
{
    evbuffer_add_printf(out, ",\"%s\":", name);
    json_text_add(out, text, size);
}

static void add_device(struct evbuffer *out, const struct command_server *server, unsigned device)
{
    evbuffer_add_printf(out,
                        "%s{\"ordinal\":%u,\"sms\":%u,\"memory_total\":%llu,\"memory_free\":%llu",
                        device ? "," : "", device, server->devices[device].sm_count,
                        (unsigned long long)server->devices[device].memory_total,
                        (unsigned long long)server->memory_free[device]);
    add_text(out, "name", server->devices[device].name, sizeof(server->devices[device].name));
    evbuffer_add(out, "}", 1);
}

static void add_client_device(struct evbuffer *out, const struct server_status_row *row,
                              unsigned device, const char *between)
{
    evbuffer_add_printf(
        out,
        "%s{\"ordinal\":%u,\"gpu_seconds\":%.6f,\"sm_seconds\":%.6f,\"sm_granted\":%u,"
        "\"memory\":%llu,\"memory_peak\":%llu,\"memory_limit\":%llu}",
        between, device, (double)row->usage.gpu_ns[device] / 1e9,
        (double)row->usage.sm_ns[device] / 1e9, row->sm_granted[device],
        (unsigned long long)row->memory_used[device], (unsigned long long)row->memory_peak[device],
        (unsigned long long)row->limits.memory_limit[device]);
}

static void add_client_devices(struct evbuffer *out, const struct command_server *server,
                               const struct server_status_row *row)
{
    const char *between = "";

    evbuffer_add_printf(out, ",\"devices\":[");
    for (unsigned i = 0; i < server->device_count; i++) {
        if (!(row->device_mask & 1ull << i))
            continue;
        add_client_device(out, row, i, between);
        between = ",";
    }
    evbuffer_add(out, "]", 1);
}

static void add_client(struct evbuffer *out, const struct command_server *server,
                       const struct server_status_row *row, bool is_operator)
{
    const struct server_usage *usage = &row->usage;
    const char *user = user_name(row->identity.uid);

    evbuffer_add_printf(out,
                        "{\"pid\":%d,\"id\":%u,\"since\":%lld,\"active\":%s,\"sm_percent\":%g,"
                        "\"priority\":%u,\"call_ms\":%llu",
                        row->identity.pid, row->id, (long long)row->identity.since,
                        row->state == SERVER_CLIENT_ACTIVE ? "true" : "false",
                        row->limits.sm_centipercent / 100.0, row->limits.priority,
                        (unsigned long long)row->call_ms);
    evbuffer_add_printf(out,
                        ",\"launches\":%llu,\"copied_bytes\":%llu,\"queued_seconds\":%.6f,"
                        "\"stalled_seconds\":%.3f,\"shared_seconds\":%.6f",
                        (unsigned long long)usage->launches,
                        (unsigned long long)server_usage_copied(usage),
                        (double)usage->queued_ns / 1e9, (double)usage->stalled_ms / 1e3,
                        (double)usage->shared_ns / 1e9);
    add_text(out, "user", user, strlen(user));
    add_text(out, "group", row->identity.group, sizeof(row->identity.group));
    add_text(out, "call", row->call, sizeof(row->call));
    if (is_operator)
        add_text(out, "command", row->identity.command, sizeof(row->identity.command));
    add_client_devices(out, server, row);
    evbuffer_add(out, "}", 1);
}

static void add_server(struct evbuffer *out, const struct status_report *report, bool is_operator)
{
    const struct command_server *server = &report->server;

    evbuffer_add_printf(out, "{\"pid\":%d,\"responding\":%s", server->pid,
                        server->responding ? "true" : "false");
    add_text(out, "name", server->name, sizeof(server->name));
    /* The sentence names a command line. */
    if (is_operator)
        add_text(out, "stall", server->stall, sizeof(server->stall));
    evbuffer_add_printf(out, ",\"stall_seconds\":%.1f,\"devices\":[", server->waited_ms / 1e3);
    for (unsigned i = 0; i < server->device_count; i++)
        add_device(out, server, i);
    evbuffer_add_printf(out, "],\"clients\":[");
    for (unsigned i = 0; i < report->client_count; i++) {
        evbuffer_add(out, ",", i > 0);
        add_client(out, server, &report->clients[i], is_operator);
    }
    evbuffer_add_printf(out, "]}");
}

void state_json_add(struct evbuffer *out, const struct daemon *daemon,
                    const struct status_query *query, bool is_operator)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    evbuffer_add_printf(out,
                        "{\"time\":%.3f,\"version\":\"%s\",\"since\":%lld,\"waiting\":%u,"
                        "\"operator\":%s,\"servers\":[",
                        (double)now.tv_sec + (double)now.tv_nsec / 1e9, FUNNEL_VERSION,
                        (long long)daemon->since, daemon->waiting_clients,
                        is_operator ? "true" : "false");
    for (unsigned i = 0; i < query->report_count; i++) {
        evbuffer_add(out, ",", i > 0);
        add_server(out, &query->reports[i], is_operator);
    }
    evbuffer_add_printf(out, "]}");
}
