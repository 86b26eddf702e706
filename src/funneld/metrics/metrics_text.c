/* SPDX-License-Identifier: Apache-2.0 */
/* All samples of a family stand together, as both formats want it. */
#include "metrics_text.h"

#include <stdlib.h>
#include <string.h>

#include "json_text.h"
#include "metric_families.h"
#include "usage_totals.h"
#include "user_name.h"

#define USER_BYTES 48 /* longer names are cut */

struct writer {
    struct evbuffer *out;
    const struct daemon *daemon;
    const struct status_query *query;
    const struct metrics_view *view;
};

/* ---- families ---- */

static void add_head(const struct writer *writer, const char *name, const char *unit,
                     bool is_counter, const char *help)
{
    const char *suffix = is_counter && !writer->view->is_openmetrics ? "_total" : "";

    evbuffer_add_printf(writer->out, "# TYPE %s%s %s\n", name, suffix,
                        is_counter ? "counter" : "gauge");
    if (*unit)
        evbuffer_add_printf(writer->out, "# UNIT %s%s %s\n", name, suffix, unit);
    evbuffer_add_printf(writer->out, "# HELP %s%s %s\n", name, suffix, help);
}

static void add_label(const struct writer *writer, const char *name, const char *value, size_t size)
{
    evbuffer_add_printf(writer->out, ",%s=", name);
    json_text_add(writer->out, value, size);
}

static void add_value(const struct writer *writer, double value)
{
    evbuffer_add_printf(writer->out, "} %.15g\n", value);
}

static void add_gpu_label(const struct writer *writer, const struct server_device *device)
{
    const uint8_t *u = device->uuid;

    evbuffer_add_printf(writer->out,
                        ",gpu=\"GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-"
                        "%02x%02x%02x%02x%02x%02x\"",
                        u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11],
                        u[12], u[13], u[14], u[15]);
}

/* Begins a sample with the label of its server. */
static void begin(const struct writer *writer, const char *name, bool is_counter,
                  const char *server)
{
    evbuffer_add_printf(writer->out, "%s%s{server=", name, is_counter ? "_total" : "");
    json_text_add(writer->out, server, SERVER_NAME_MAX);
}

/* ---- clients ---- */

static bool is_shown(const struct writer *writer, uid_t uid)
{
    return !writer->view->is_one_user || writer->view->uid == uid;
}

static void begin_client(const struct writer *writer, const char *name, bool is_counter,
                         const struct status_report *report, const struct server_status_row *row)
{
    begin(writer, name, is_counter, report->server.name);
    evbuffer_add_printf(writer->out, ",pid=\"%d\",id=\"%u\"", row->identity.pid, row->id);
    add_label(writer, "user", user_name(row->identity.uid), USER_BYTES);
    add_label(writer, "group", row->identity.group, sizeof(row->identity.group));
}

static void add_client(const struct writer *writer, const struct client_family *family,
                       const struct status_report *report, const struct server_status_row *row)
{
    unsigned devices = family->by_gpu ? report->server.device_count : 1;

    for (unsigned i = 0; i < devices; i++) {
        if (family->by_gpu && !(row->device_mask & 1ull << i))
            continue;
        begin_client(writer, family->name, family->is_counter, report, row);
        if (family->by_gpu)
            add_gpu_label(writer, &report->server.devices[i]);
        add_value(writer, family->value(row, i));
    }
}

#define for_each_client(writer, report, row)                                          \
    for (const struct status_report *report = (writer)->query->reports;               \
         report < (writer)->query->reports + (writer)->query->report_count; report++) \
        for (const struct server_status_row *row = report->clients;                   \
             row < report->clients + report->client_count; row++)                     \
            if (is_shown(writer, row->identity.uid))

static void add_clients(const struct writer *writer)
{
    for (unsigned i = 0; i < client_family_count; i++) {
        const struct client_family *family = &client_families[i];

        add_head(writer, family->name, family->unit, family->is_counter, family->help);
        for_each_client(writer, report, row) add_client(writer, family, report, row);
    }
}

static void add_client_info(const struct writer *writer)
{
    add_head(writer, "funnel_client_info", "", false, "Always 1: who the client is.");
    for_each_client(writer, report, row)
    {
        begin_client(writer, "funnel_client_info", false, report, row);
        add_label(writer, "namespace", row->identity.space, sizeof(row->identity.space));
        if (writer->view->shows_commands)
            add_label(writer, "command", row->identity.command, sizeof(row->identity.command));
        add_value(writer, 1);
    }
}

/* ---- users ---- */

static void add_user_family(const struct writer *writer, const struct user_family *family,
                            const struct usage_totals *totals)
{
    add_head(writer, family->name, family->unit, family->is_counter, family->help);
    for (unsigned i = 0; i < totals->count; i++) {
        const struct usage_total *total = &totals->total[i];

        if (!*total->server || !is_shown(writer, total->uid))
            continue;
        begin(writer, family->name, family->is_counter, total->server);
        add_label(writer, "user", user_name(total->uid), USER_BYTES);
        add_label(writer, "group", total->group, sizeof(total->group));
        add_value(writer, family->value(total));
    }
}

static void add_users(const struct writer *writer)
{
    struct usage_totals *totals = malloc(sizeof(*totals));

    if (!totals)
        return;
    *totals = *usage_totals();
    for_each_client(writer, report, row) usage_add(
        &usage_totals_find(totals, report->server.name, row->identity.uid, row->identity.group)
             ->usage,
        &row->usage);
    for (unsigned i = 0; i < user_family_count; i++)
        add_user_family(writer, &user_families[i], totals);
    free(totals);
}

/* ---- servers and devices ---- */

static void add_servers(const struct writer *writer, const char *name, const char *unit,
                        const char *help, double (*value)(const struct command_server *server))
{
    add_head(writer, name, unit, false, help);
    for (unsigned i = 0; i < writer->query->report_count; i++) {
        begin(writer, name, false, writer->query->reports[i].server.name);
        add_value(writer, value(&writer->query->reports[i].server));
    }
}

static double is_up(const struct command_server *server)
{
    return server->responding && server->state == SERVER_ACTIVE;
}

static double clients_of(const struct command_server *server)
{
    return server->client_count;
}

static double stall_of(const struct command_server *server)
{
    return server->waited_ms / 1e3;
}

static void add_devices(const struct writer *writer, const char *name, const char *unit,
                        const char *help,
                        double (*value)(const struct command_server *server, unsigned device))
{
    add_head(writer, name, unit, false, help);
    for (unsigned i = 0; i < writer->query->report_count; i++) {
        const struct command_server *server = &writer->query->reports[i].server;

        for (unsigned d = 0; d < server->device_count; d++) {
            begin(writer, name, false, server->name);
            add_gpu_label(writer, &server->devices[d]);
            add_label(writer, "name", server->devices[d].name, sizeof(server->devices[d].name));
            add_value(writer, value(server, d));
        }
    }
}

static double memory_size(const struct command_server *server, unsigned device)
{
    return (double)server->devices[device].memory_total;
}

static double memory_free(const struct command_server *server, unsigned device)
{
    return (double)server->memory_free[device];
}

static double sm_count(const struct command_server *server, unsigned device)
{
    return server->devices[device].sm_count;
}

static void add_daemon(const struct writer *writer)
{
    add_head(writer, "funnel_build_info", "", false, "Always 1: the release.");
    evbuffer_add_printf(writer->out, "funnel_build_info{version=\"%s\"} 1\n", FUNNEL_VERSION);
    add_head(writer, "funnel_waiting_clients", "", false, "Programs that wait for a server.");
    evbuffer_add_printf(writer->out, "funnel_waiting_clients %u\n",
                        writer->daemon->waiting_clients);
    add_head(writer, "funnel_faults", "", true, "Fatal GPU errors of servers.");
    evbuffer_add_printf(writer->out, "funnel_faults_total %llu\n",
                        (unsigned long long)usage_totals()->faults);
}

void metrics_text_add(struct evbuffer *out, const struct daemon *daemon,
                      const struct status_query *query, const struct metrics_view *view)
{
    const struct writer writer = {out, daemon, query, view};

    add_daemon(&writer);
    add_servers(&writer, "funnel_server_up", "", "Whether the server is active and responds.",
                is_up);
    add_servers(&writer, "funnel_server_clients", "", "Clients of the server.", clients_of);
    add_servers(&writer, "funnel_server_stall_seconds", "seconds",
                "How long a client has been in a call while another one is.", stall_of);
    add_devices(&writer, "funnel_gpu_memory_size_bytes", "bytes", "Memory of the GPU.",
                memory_size);
    add_devices(&writer, "funnel_gpu_memory_free_bytes", "bytes", "Memory that nobody holds.",
                memory_free);
    add_devices(&writer, "funnel_gpu_multiprocessors", "", "Multiprocessors of the GPU.", sm_count);
    add_clients(&writer);
    add_client_info(&writer);
    add_users(&writer);
    evbuffer_add_printf(out, "# EOF\n");
}
