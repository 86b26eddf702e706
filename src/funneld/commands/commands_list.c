/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of MPS v3 that list servers, namespaces, clients and devices. */
#include <stdlib.h>
#include <string.h>

#include "command_protocol.h"
#include "commands.h"
#include "console.h"
#include "lane_name.h"
#include "list_view.h"
#include "server_process.h"
#include "service.h"
#include "static_partitions.h"
#include "status_query.h"
#include "text.h"

#define CELL 96

/* ---- servers ---- */

static const char *const server_titles[] = {
    "name",        "uid",           "pid", "status", "pipe-directory", "allowed-devices",
    "context-ids", "timeslice-pct", NULL};

/* `service` is NULL for the server of a user. */
static void add_server(struct list_view *view, const char *name, uid_t owner, const char *pid,
                       const char *status, const struct service *service)
{
    const char *pipe = service_directory(view->console->daemon, service ? service->name : name);
    const char *devices = service && *service->devices ? service->devices : "all";
    char uid[16], percent[16] = "-";

    text_format(uid, sizeof(uid), "%u", (unsigned)owner);
    if (service && service->timeslice_percent)
        text_format(percent, sizeof(percent), "%u", service->timeslice_percent);
    table_add(&view->table, (const char *[]){name, uid, pid, status, pipe, devices, "-", percent});
}

static void fill_server(struct list_view *view, const struct status_report *report)
{
    const struct command_server *server = &report->server;
    char pid[16], service[SERVER_NAME_MAX];

    /* A field is that of the main lane. */
    if (*view->values.field && !lane_name_is_main(server->name))
        return;
    lane_name_service(server->name, service);
    text_format(pid, sizeof(pid), "%d", server->pid);
    add_server(view, server->name, server->uid, pid,
               server_status_name(server->state, server->stopping),
               service_find(view->console->daemon, service));
}

/* Services for which no server process runs. */
static void add_idle_servers(struct list_view *view)
{
    const struct daemon *daemon = view->console->daemon;

    list_for_each (struct service, service, &daemon->services, link)
        if (list_view_may_show(view, service) &&
            !server_process_find((struct daemon *)daemon, service->name))
            add_server(view, service->name, service->uid, "-", "Stopped", service);
}

static const struct list_view_type servers = {server_titles, 7, fill_server, add_idle_servers};

/* ---- namespaces ---- */

static const char *const namespace_titles[] = {"name",
                                               "server",
                                               "server-status",
                                               "pinned-memory-limit",
                                               "active-thread-percentage",
                                               "client-priority",
                                               "pipe-directory",
                                               "cgroup",
                                               "cgroup-depth",
                                               NULL};

static void add_namespace(struct list_view *view, const struct mps_namespace *space)
{
    const struct server_process *server =
        server_process_find(view->console->daemon, space->service->name);
    const struct limit_change *change = &space->change;
    char percent[16] = "-", priority[16] = "-", depth[16] = "all";

    if (change->sm_centipercent)
        text_format(percent, sizeof(percent), "%g", change->sm_centipercent / 100.0);
    if (change->sets_priority)
        text_format(priority, sizeof(priority), "%u", change->priority);
    if (space->cgroup_depth != GRAMMAR_LEVELS_ALL)
        text_format(depth, sizeof(depth), "%u", space->cgroup_depth);
    table_add(
        &view->table,
        (const char *[]){space->name, space->service->name,
                         server ? server_status_name(server->state, server->stopping) : "Stopped",
                         *space->memory_text ? space->memory_text : "-", percent, priority,
                         space->directory, *space->cgroup ? space->cgroup : "-", depth});
}

/* Servers are not queried. Those of users without a service have no limits to show. */
static void add_namespaces(struct list_view *view)
{
    const char *wanted = view->values.space;

    list_for_each (struct service, service, &view->console->daemon->services, link) {
        if (!list_view_may_show(view, service))
            continue;
        list_for_each (struct mps_namespace, space, &service->namespaces, link)
            if (!*wanted || !strcmp(space->name, wanted))
                add_namespace(view, space);
    }
}

static const struct list_view_type namespaces = {namespace_titles, 7, NULL, add_namespaces};

/* ---- clients ---- */

static const char *const client_titles[] = {"pid", "server", "device",   "maws-ns",
                                            "cmd", "pci-id", "linux-ns", NULL};

static void add_client(struct list_view *view, const struct status_report *report,
                       const struct server_status_row *row, int device)
{
    char pid[16], ordinal[16] = "-", space[24], bus[CELL] = "-";

    text_format(pid, sizeof(pid), "%d", row->identity.pid);
    text_format(space, sizeof(space), "%llu", (unsigned long long)row->identity.pid_namespace);
    if (device >= 0) {
        text_format(ordinal, sizeof(ordinal), "%d", device);
        text_format(bus, sizeof(bus), "%.16s", report->server.devices[device].pci_bus_id);
    }
    table_add(&view->table, (const char *[]){pid, report->server.name, ordinal, row->identity.space,
                                             row->identity.command, bus, space});
}

/* A row for each device that it uses. */
static void fill_clients(struct list_view *view, const struct status_report *report)
{
    for (unsigned i = 0; i < report->client_count; i++) {
        const struct server_status_row *row = &report->clients[i];

        if (!console_may_see_client(view->console, row->identity.uid) ||
            (grammar_given(&view->values, GRAMMAR_CLIENT) &&
             !status_row_is_client(row, view->values.client)))
            continue;
        if (row->device_mask == 0)
            add_client(view, report, row, -1);
        for (unsigned device = 0; device < report->server.device_count; device++)
            if (row->device_mask & (1ull << device))
                add_client(view, report, row, (int)device);
    }
}

static const struct list_view_type clients = {client_titles, 5, fill_clients, NULL};

/* ---- devices ---- */

static const char *const device_titles[] = {"Ordinal",      "Server",     "PCI ID",
                                            "Device UUID",  "Name",       "Total SMs",
                                            "Total Chunks", "Attributes", NULL};

static void fill_devices(struct list_view *view, const struct status_report *report)
{
    for (unsigned i = 0; i < report->server.device_count; i++) {
        const struct server_device *device = &report->server.devices[i];
        char ordinal[16], bus[24], uuid[GPU_UUID_TEXT], sms[16], chunks[16];

        text_format(ordinal, sizeof(ordinal), "%u", i);
        text_format(bus, sizeof(bus), "%.16s", device->pci_bus_id);
        text_format(sms, sizeof(sms), "%u", device->sm_count);
        text_format(chunks, sizeof(chunks), "%u", static_partitions_chunks(device, true));
        device_uuid_text(device, uuid);
        table_add(&view->table, (const char *[]){ordinal, report->server.name, bus, uuid,
                                                 device->name, sms, chunks, "-"});
    }
}

static const struct list_view_type devices = {device_titles, 8, fill_devices, NULL};

/* ---- the commands ---- */

void run_server_list(struct console *console, const struct grammar_values *values)
{
    list_view_show(console, values, &servers);
}

void run_server_get(struct console *console, const struct grammar_values *values)
{
    list_view_show(console, values, &servers);
}

void run_namespace_list(struct console *console, const struct grammar_values *values)
{
    list_view_show(console, values, &namespaces);
}

void run_namespace_get(struct console *console, const struct grammar_values *values)
{
    list_view_show(console, values, &namespaces);
}

void run_client_list(struct console *console, const struct grammar_values *values)
{
    list_view_show(console, values, &clients);
}

void run_client_get(struct console *console, const struct grammar_values *values)
{
    list_view_show(console, values, &clients);
}

void run_device_list(struct console *console, const struct grammar_values *values)
{
    list_view_show(console, values, &devices);
}
