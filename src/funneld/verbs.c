/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands of MPS v3: each makes a table of what a survey finds. `list` shows its rows, `get`
 * one cell of the first one.
 */
#include <stdlib.h>
#include <string.h>

#include "command_protocol.h"
#include "commands.h"
#include "console.h"
#include "funneld_server.h"
#include "service.h"
#include "statics.h"
#include "survey.h"
#include "table.h"
#include "text.h"

#define CELL 96

struct look;

/* What there is to look at. */
struct subject {
    const char *const *titles;
    unsigned listed; /* columns that a list shows; `get` knows all */
    void (*fill)(struct look *look, const struct survey_part *part); /* may be NULL */
    void (*complete)(struct look *look); /* adds what no running server tells; may be NULL */
};

struct look {
    struct console *console;
    struct grammar_values values;
    const struct subject *subject;
    struct table table;
};

static bool is_meant(const struct look *look, const char *server)
{
    return !*look->values.name || !strcmp(look->values.name, server);
}

/* A service that the one who asks may see, and has asked for. */
static bool is_visible(const struct look *look, const struct service *service)
{
    const struct console *console = look->console;

    return is_meant(look, service->name) &&
           (console_is_operator(console) ||
            (!console->daemon->multiuser && console->uid == service->uid));
}

/* ---- servers ---- */

static const char *const server_titles[] = {
    "name", "uid", "pid", "status", "pipe-directory", "allowed-devices", "context-ids", NULL};

static const char *status_of(unsigned state, bool stopping)
{
    static const char *const names[] = {"Initializing", "Ready", "Fault"};

    return stopping ? "Stopping" : names[state <= 2 ? state : 2];
}

/* `service` is NULL for the server of a user. */
static void add_server(struct look *look, const char *name, uid_t owner, const char *pid,
                       const char *status, const struct service *service)
{
    const char *pipe = service ? service_namespace(service, NAMESPACE_DEFAULT)->directory
                               : look->console->daemon->paths.pipe;
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
    add_server(look, server->name, server->uid, pid, status_of(server->state, server->stopping),
               service_find(look->console->daemon, server->name));
}

/* Those that no process works for yet. */
static void add_idle_servers(struct look *look)
{
    const struct daemon *daemon = look->console->daemon;

    list_for_each(struct service, service, &daemon->services,
                  link) if (is_visible(look, service) &&
                            !server_for((struct daemon *)daemon, service->name))
        add_server(look, service->name, service->uid, "-", "Stopped", service);
}

static const struct subject servers = {server_titles, 7, fill_server, add_idle_servers};

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
                               server ? status_of(server->state, server->stopping) : "Stopped",
                               *space->memory_text ? space->memory_text : "-", percent, priority,
                               space->directory});
}

/* No server has to be asked. Users' own servers without a record have no limits to show. */
static void add_namespaces(struct look *look)
{
    const char *wanted = look->values.space;

    list_for_each(struct service, service, &look->console->daemon->services, link)
    {
        if (!is_visible(look, service))
            continue;
        list_for_each(struct mps_namespace, space, &service->namespaces,
                      link) if (!*wanted || !strcmp(space->name, wanted))
            add_namespace(look, space);
    }
}

static const struct subject namespaces = {namespace_titles, 7, NULL, add_namespaces};

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
    table_add(&look->table,
              (const char *[]){pid, part->server.name, ordinal, row->identity.space, row->identity.command, bus, space});
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

static const struct subject clients = {client_titles, 5, fill_clients, NULL};

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
        text_format(chunks, sizeof(chunks), "%u", statics_chunks(device));
        device_uuid_text(device, uuid);
        table_add(&look->table,
                  (const char *[]){ordinal, part->server.name, bus, uuid, device->name, sms, chunks, "-"});
    }
}

static const struct subject devices = {device_titles, 8, fill_devices, NULL};

/* ---- the answer ---- */

static void print_line(void *console, const char *text)
{
    console_print(console, "%s", text);
}

/* What the table is about has to be there when it was named. */
static int check_found(const struct look *look, const struct survey *survey)
{
    const struct grammar_values *values = &look->values;
    unsigned meant = 0;

    for (unsigned i = 0; i < survey->part_count; i++)
        meant += is_meant(look, survey->parts[i].server.name);
    list_for_each(struct service, service, &look->console->daemon->services,
                  link) meant += is_visible(look, service);
    if (*values->name && !meant)
        console_print(look->console, "Server '%s' not found", values->name);
    else if (grammar_given(values, GRAMMAR_CLIENT) && !look->table.rows)
        console_print(look->console, "Client %d not found", (int)values->client);
    else if (*values->space && !look->table.rows)
        console_print(look->console, "Namespace '%s' not found", values->space);
    else if (look->table.incomplete)
        console_print(look->console, "Out of memory");
    else
        return COMMAND_OK;
    return COMMAND_FAILED;
}

static int print_field(const struct look *look)
{
    int column = table_column(&look->table, look->values.field);

    if (column < 0) {
        console_print(look->console, "There is no field '%s'", look->values.field);
        return COMMAND_REJECTED;
    }
    console_print(look->console, "%s", look->table.cells[column]);
    return COMMAND_OK;
}

static void on_surveyed(struct survey *survey, void *context)
{
    struct look *look = context;
    struct console *console = look->console;
    int status;

    for (unsigned i = 0; i < survey->part_count; i++)
        if (look->subject->fill && is_meant(look, survey->parts[i].server.name))
            look->subject->fill(look, &survey->parts[i]);
    if (look->subject->complete)
        look->subject->complete(look);
    status = check_found(look, survey);
    if (status == COMMAND_OK && *look->values.field)
        status = print_field(look);
    else if (status == COMMAND_OK)
        table_print(&look->table, look->subject->listed, look->values.format, print_line, console);
    table_fini(&look->table);
    free(look);
    console_done(console, status);
}

static bool may_see(const struct server *server, const void *console)
{
    return console_may_touch(console, server);
}

static void show(struct console *console, const struct grammar_values *values,
                 const struct subject *subject)
{
    struct look *look = calloc(1, sizeof(*look));

    if (look) {
        look->console = console;
        look->values = *values;
        look->subject = subject;
        table_init(&look->table, subject->titles);
        if (!survey_start(console->daemon, may_see, console, on_surveyed, look))
            return;
        free(look);
    }
    console_print(console, "Out of memory");
    console_done(console, COMMAND_FAILED);
}

/* ---- the verbs ---- */

void run_server_list(struct console *console, const struct grammar_values *values)
{
    show(console, values, &servers);
}

void run_server_get(struct console *console, const struct grammar_values *values)
{
    show(console, values, &servers);
}

void run_namespace_list(struct console *console, const struct grammar_values *values)
{
    show(console, values, &namespaces);
}

void run_namespace_get(struct console *console, const struct grammar_values *values)
{
    show(console, values, &namespaces);
}

void run_client_list(struct console *console, const struct grammar_values *values)
{
    show(console, values, &clients);
}

void run_client_get(struct console *console, const struct grammar_values *values)
{
    show(console, values, &clients);
}

void run_device_list(struct console *console, const struct grammar_values *values)
{
    show(console, values, &devices);
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
        if (!survey_start(console->daemon, may_see, console, on_searched, ending))
            return;
        free(ending);
    }
    console_print(console, "Out of memory");
    console_done(console, COMMAND_FAILED);
}
