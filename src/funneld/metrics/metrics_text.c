/* SPDX-License-Identifier: Apache-2.0 */
/* All samples of a family stand together, as both formats want it. */
#include "metrics_text.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_list.h"
#include "gpu_uuid.h"
#include "json_text.h"
#include "metric_families.h"
#include "text.h"
#include "usage_history.h"
#include "usage_totals.h"
#include "user_name.h"

#define USER_BYTES 48 /* longer names are cut */
#define CLIENT_UTILIZATION "funnel_client_sm_utilization_ratio"

struct writer {
    struct evbuffer *out;
    const struct daemon *daemon;
    const struct status_query *query;
    const struct gpu_list *gpus;
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

/* dcgm-exporter's name of the label is UUID, so that its figures and these can be joined. */
static void add_gpu_label(const struct writer *writer, const struct server_device *device)
{
    char uuid[GPU_UUID_TEXT];

    gpu_uuid_text(device->uuid, uuid);
    evbuffer_add_printf(writer->out, "gpu=\"%s\",UUID=\"%s\"", uuid, uuid);
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
        if (family->by_gpu) {
            evbuffer_add(writer->out, ",", 1);
            add_gpu_label(writer, &report->server.devices[i]);
        }
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

static void add_utilization(const struct writer *writer, const struct status_report *report,
                            const struct server_status_row *row)
{
    const struct history_program *program = usage_history_find(report->server.pid, row);

    for (unsigned i = 0; program && i < report->server.device_count; i++) {
        const struct server_device *device = &report->server.devices[i];
        double sms = usage_history_sms(program->serial, device->uuid);

        if (sms < 0 || !device->sm_count)
            continue;
        begin_client(writer, CLIENT_UTILIZATION, false, report, row);
        evbuffer_add(writer->out, ",", 1);
        add_gpu_label(writer, device);
        add_value(writer, sms / device->sm_count);
    }
}

static void add_client_utilization(const struct writer *writer)
{
    add_head(writer, CLIENT_UTILIZATION, "ratio", false,
             "Share of the GPU's multiprocessors that the client had in the last two seconds.");
    for_each_client(writer, report, row) add_utilization(writer, report, row);
}

static void add_client_info(const struct writer *writer)
{
    add_head(writer, "funnel_client_info", "", false, "Always 1: who the client is.");
    for_each_client(writer, report, row)
    {
        begin_client(writer, "funnel_client_info", false, report, row);
        add_label(writer, "namespace", row->identity.space, sizeof(row->identity.space));
        if (*row->identity.container)
            add_label(writer, "container_id", row->identity.container,
                      sizeof(row->identity.container));
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

/* What it has used in other lanes is in the totals already. */
static void add_use(struct usage_totals *totals, const char *server,
                    const struct server_status_row *row)
{
    struct usage_total *total =
        usage_totals_find(totals, server, row->identity.uid, row->identity.group);

    usage_add(&total->usage, &row->usage);
    usage_subtract(&total->usage, &row->before);
}

static void add_users(const struct writer *writer)
{
    struct usage_totals *totals = malloc(sizeof(*totals));

    if (!totals)
        return;
    *totals = *usage_totals();
    for_each_client(writer, report, row) add_use(totals, report->server.name, row);
    for (unsigned i = 0; i < user_family_count; i++)
        add_user_family(writer, &user_families[i], totals);
    free(totals);
}

/* ---- servers ---- */

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

static double swap_locked_of(const struct command_server *server)
{
    return (double)server->swap_locked;
}

static double swap_used_of(const struct command_server *server)
{
    return (double)server->swap_used;
}

static double swap_kept_of(const struct command_server *server)
{
    return (double)server->swap_kept;
}

static double stall_of(const struct command_server *server)
{
    return server->waited_ms / 1e3;
}

/* ---- GPUs ---- */

static void begin_gpu(const struct writer *writer, const char *name,
                      const struct server_device *device)
{
    evbuffer_add_printf(writer->out, "%s{", name);
    add_gpu_label(writer, device);
    add_label(writer, "name", device->name, sizeof(device->name));
}

/* A negative value is not known. */
static void add_gpus(const struct writer *writer, const char *name, const char *unit,
                     const char *help, double (*value)(const struct gpu_figures *gpu))
{
    add_head(writer, name, unit, false, help);
    for (unsigned i = 0; i < writer->gpus->count; i++) {
        const struct gpu_figures *gpu = &writer->gpus->gpus[i];

        if (value(gpu) < 0)
            continue;
        begin_gpu(writer, name, gpu->device);
        add_value(writer, value(gpu));
    }
}

static double memory_size(const struct gpu_figures *gpu)
{
    return (double)gpu->device->memory_total;
}

static double memory_free(const struct gpu_figures *gpu)
{
    return gpu->is_known ? (double)gpu->memory_free : -1;
}

static double sm_count(const struct gpu_figures *gpu)
{
    return gpu->device->sm_count;
}

static double utilization(const struct gpu_figures *gpu)
{
    return gpu->device->sm_count ? usage_history_gpu_sms(gpu->device->uuid) / gpu->device->sm_count
                                 : -1;
}

/* A family without a sample would promise what no device tells. */
static void add_sensor(const struct writer *writer, enum sensor sensor)
{
    const struct sensor_row *row = &sensor_rows[sensor];
    bool has_head = false;
    char name[64];

    text_format(name, sizeof(name), "funnel_gpu_%s", row->name);
    for (unsigned i = 0; i < writer->gpus->count; i++) {
        const struct gpu_figures *gpu = &writer->gpus->gpus[i];
        double value = sensor_value(&gpu->sensors, sensor);

        if (value < 0)
            continue;
        if (!has_head)
            add_head(writer, name, strrchr(row->name, '_') + 1, false, row->help);
        has_head = true;
        begin_gpu(writer, name, gpu->device);
        add_value(writer, value);
    }
}

/* The labels by which dashboards of dcgm-exporter name GPUs. */
static void add_gpu_info(const struct writer *writer)
{
    char host[256] = "";

    if (gethostname(host, sizeof(host) - 1))
        *host = '\0';
    add_head(writer, "funnel_gpu_info", "", false, "Always 1: which GPU it is.");
    for (unsigned i = 0; i < writer->gpus->count; i++) {
        const struct server_device *device = writer->gpus->gpus[i].device;

        begin_gpu(writer, "funnel_gpu_info", device);
        add_label(writer, "modelName", device->name, sizeof(device->name));
        add_label(writer, "pci_bus_id", device->pci_bus_id, sizeof(device->pci_bus_id));
        add_label(writer, "Hostname", host, sizeof(host));
        add_value(writer, 1);
    }
}

static void add_all_gpus(const struct writer *writer)
{
    add_gpus(writer, "funnel_gpu_memory_size_bytes", "bytes", "Memory of the GPU.", memory_size);
    add_gpus(writer, "funnel_gpu_memory_free_bytes", "bytes", "Memory that is not in use.",
             memory_free);
    add_gpus(writer, "funnel_gpu_multiprocessors", "", "Multiprocessors of the GPU.", sm_count);
    add_gpus(writer, "funnel_gpu_sm_utilization_ratio", "ratio",
             "Share of its multiprocessors in use by all clients in the last two seconds.",
             utilization);
    for (unsigned i = 0; i < SENSOR_COUNT; i++)
        add_sensor(writer, i);
    add_gpu_info(writer);
}

/* ---- all ---- */

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
    struct gpu_list gpus;
    const struct writer writer = {out, daemon, query, &gpus, view};

    gpu_list_read(query, &gpus);
    add_daemon(&writer);
    add_servers(&writer, "funnel_server_up", "", "Whether the server is active and responds.",
                is_up);
    add_servers(&writer, "funnel_server_clients", "", "Clients of the server.", clients_of);
    add_servers(&writer, "funnel_server_swap_locked_bytes", "bytes",
                "Host memory that is page-locked for device memory.", swap_locked_of);
    add_servers(&writer, "funnel_server_swap_used_bytes", "bytes",
                "The part of it that has contents of device memory.", swap_used_of);
    add_servers(&writer, "funnel_server_swap_kept_bytes", "bytes",
                "The part of it that is kept of device memory which has returned.", swap_kept_of);
    add_servers(&writer, "funnel_server_stall_seconds", "seconds",
                "How long a client has been in a call while another one is.", stall_of);
    add_all_gpus(&writer);
    add_clients(&writer);
    add_client_utilization(&writer);
    add_client_info(&writer);
    add_users(&writer);
    evbuffer_add_printf(out, "# EOF\n");
}
