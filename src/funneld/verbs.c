/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands of MPS v3 that look at servers, namespaces, clients and devices.
 */
#include <stdlib.h>
#include <string.h>

#include "command_protocol.h"
#include "commands.h"
#include "console.h"
#include "funneld_server.h"
#include "look.h"
#include "service.h"
#include "statics.h"
#include "survey.h"
#include "text.h"

#define CELL 96

/* ---- servers ---- */

static const char *const server_titles[] = {
    "name", "uid", "pid", "status", "pipe-directory", "allowed-devices", "context-ids", NULL};

/* `service` is NULL for the server of a user. */
static void add_server(struct look *look, const char *name, uid_t owner, const char *pid,
                       const char *status, const struct service *service)
{
    const char *pipe = service_directory(look->console->daemon, name);
    const char *devices = service && *service->devices ? service->devices : "all";
    char uid[16];

    text_format(uid, sizeof(uid), "%u", (unsigned)owner);
    table_add(&look->table, (const char *[]){name, uid, pid, status, pipe, devices, "-"});
}

static void fill_server(struct look *look, const struct survey_part *part)
{
    const struct command_server *server = &part->server;
    char pid[16];

    text_format(pid, sizeof(pid), "%d", server->pid);
    add_server(look, server->name, server->uid, pid, look_status(server->state, server->stopping),
               service_find(look->console->daemon, server->name));
}

/* Those that no process works for yet. */
static void add_idle_servers(struct look *look)
{
    const struct daemon *daemon = look->console->daemon;

    list_for_each(struct service, service, &daemon->services,
                  link) if (look_may_see(look, service) &&
                            !server_for((struct daemon *)daemon, service->name))
        add_server(look, service->name, service->uid, "-", "Stopped", service);
}

static const struct look_subject servers = {server_titles, 7, fill_server, add_idle_servers};

/* ---- namespaces ---- */

static const char *const namespace_titles[] = {"name",
                                               "server",
                                               "server-status",
                                               "pinned-memory-limit",
                                               "active-thread-percentage",
                                               "client-priority",
                                               "pipe-directory",
                                               NULL};

static void add_namespace(struct look *look, const struct mps_namespace *space)
{
    const struct server *server = server_for(look->console->daemon, space->service->name);
    const struct limit_order *order = &space->order;
    char percent[16] = "-", priority[16] = "-";

    if (order->sm_centipercent)
        text_format(percent, sizeof(percent), "%g", order->sm_centipercent / 100.0);
    if (order->sets_priority)
        text_format(priority, sizeof(priority), "%u", order->priority);
    table_add(&look->table,
              (const char *[]){space->name, space->service->name,
                               server ? look_status(server->state, server->stopping) : "Stopped",
                               *space->memory_text ? space->memory_text : "-", percent, priority,
                               space->directory});
}

/* No server has to be asked. Users' own servers without a record have no limits to show. */
static void add_namespaces(struct look *look)
{
    const char *wanted = look->values.space;

    list_for_each(struct service, service, &look->console->daemon->services, link)
    {
        if (!look_may_see(look, service))
            continue;
        list_for_each(struct mps_namespace, space, &service->namespaces,
                      link) if (!*wanted || !strcmp(space->name, wanted))
            add_namespace(look, space);
    }
}

static const struct look_subject namespaces = {namespace_titles, 7, NULL, add_namespaces};

/* ---- clients ---- */

static const char *const client_titles[] = {"pid", "server", "device",   "maws-ns",
                                            "cmd", "pci-id", "linux-ns", NULL};

static void add_client(struct look *look, const struct survey_part *part,
                       const struct server_status_row *row, int device)
{
    char pid[16], ordinal[16] = "-", space[24], bus[CELL] = "-";

    text_format(pid, sizeof(pid), "%d", row->identity.pid);
    text_format(space, sizeof(space), "%llu", (unsigned long long)row->identity.pid_namespace);
    if (device >= 0) {
        text_format(ordinal, sizeof(ordinal), "%d", device);
        text_format(bus, sizeof(bus), "%.16s", part->server.devices[device].pci_bus_id);
    }
    table_add(&look->table, (const char *[]){pid, part->server.name, ordinal, row->identity.space,
                                             row->identity.command, bus, space});
}

/* A row for each device that it uses. */
static void fill_clients(struct look *look, const struct survey_part *part)
{
    for (unsigned i = 0; i < part->client_count; i++) {
        const struct server_status_row *row = &part->clients[i];

        if (grammar_given(&look->values, GRAMMAR_CLIENT) &&
            row->identity.pid != look->values.client)
            continue;
        if (row->device_mask == 0)
            add_client(look, part, row, -1);
        for (unsigned device = 0; device < part->server.device_count; device++)
            if (row->device_mask & (1ull << device))
                add_client(look, part, row, (int)device);
    }
}

static const struct look_subject clients = {client_titles, 5, fill_clients, NULL};

/* ---- devices ---- */

static const char *const device_titles[] = {"Ordinal",      "Server",     "PCI ID",
                                            "Device UUID",  "Name",       "Total SMs",
                                            "Total Chunks", "Attributes", NULL};

static void fill_devices(struct look *look, const struct survey_part *part)
{
    for (unsigned i = 0; i < part->server.device_count; i++) {
        const struct server_device *device = &part->server.devices[i];
        char ordinal[16], bus[24], uuid[DEVICE_UUID_TEXT], sms[16], chunks[16];

        text_format(ordinal, sizeof(ordinal), "%u", i);
        text_format(bus, sizeof(bus), "%.16s", device->pci_bus_id);
        text_format(sms, sizeof(sms), "%u", device->sm_count);
        text_format(chunks, sizeof(chunks), "%u", statics_chunks(device, true));
        device_uuid_text(device, uuid);
        table_add(&look->table, (const char *[]){ordinal, part->server.name, bus, uuid,
                                                 device->name, sms, chunks, "-"});
    }
}

static const struct look_subject devices = {device_titles, 8, fill_devices, NULL};

/* ---- the verbs ---- */

void run_server_list(struct console *console, const struct grammar_values *values)
{
    look_show(console, values, &servers);
}

void run_server_get(struct console *console, const struct grammar_values *values)
{
    look_show(console, values, &servers);
}

void run_namespace_list(struct console *console, const struct grammar_values *values)
{
    look_show(console, values, &namespaces);
}

void run_namespace_get(struct console *console, const struct grammar_values *values)
{
    look_show(console, values, &namespaces);
}

void run_client_list(struct console *console, const struct grammar_values *values)
{
    look_show(console, values, &clients);
}

void run_client_get(struct console *console, const struct grammar_values *values)
{
    look_show(console, values, &clients);
}

void run_device_list(struct console *console, const struct grammar_values *values)
{
    look_show(console, values, &devices);
}

/* ---- client terminate ---- */

struct ending {
    struct console *console;
    struct grammar_values values;
};

static void on_searched(struct survey *survey, void *context)
{
    struct ending *ending = context;
    struct console *console = ending->console;
    struct grammar_values values = ending->values;

    free(ending);
    for (unsigned i = 0; i < survey->part_count; i++)
        for (unsigned j = 0; j < survey->parts[i].client_count; j++)
            if (survey->parts[i].clients[j].identity.pid == values.client)
                values.server = survey->parts[i].server.pid;
    if (values.server) {
        run_terminate_client(console, &values);
        return;
    }
    console_print(console, "Client %d not found", (int)values.client);
    console_done(console, COMMAND_FAILED);
}

void run_client_terminate(struct console *console, const struct grammar_values *values)
{
    struct ending *ending = calloc(1, sizeof(*ending));

    if (ending) {
        *ending = (struct ending){console, *values};
        if (!survey_start(console->daemon, look_may_ask, console, on_searched, ending))
            return;
        free(ending);
    }
    console_print(console, "Out of memory");
    console_done(console, COMMAND_FAILED);
}
