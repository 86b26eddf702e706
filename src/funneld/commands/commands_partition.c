/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sm-partition of MPS 3: static partitions of one named server. They are recorded at once, and
 * created when the server runs, because only then its devices are known.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "command_protocol.h"
#include "commands.h"
#include "commands_service.h"
#include "console.h"
#include "list_view.h"
#include "service.h"
#include "text.h"

static bool is_created(const struct daemon *daemon, const struct service *service,
                       const struct static_partition *partition)
{
    const struct server_process *server =
        server_process_find((struct daemon *)daemon, service->name);

    return server && server->state == SERVER_ACTIVE && *partition->uuid;
}

static const char *device_of(const struct static_partition *partition)
{
    return *partition->uuid ? partition->uuid : partition->device;
}

/* ---- commands that have to know the clients of the server ---- */

struct partition_command {
    struct console *console;
    struct grammar_values values;
    void (*run)(struct partition_command *command, struct service *service,
                const struct status_query *query);
};

static void on_status(struct status_query *query, void *context)
{
    struct partition_command *command = context;
    struct service *service = command_service(command->console, command->values.name);

    if (service && command_report_silent(command->console, query))
        console_done(command->console, COMMAND_FAILED);
    else if (service)
        command->run(command, service, query);
    free(command);
}

static bool is_named(const struct server_process *server, const void *name)
{
    return !strcmp(server->service, name);
}

static void query_clients(struct console *console, const struct grammar_values *values,
                          void (*run)(struct partition_command *, struct service *,
                                      const struct status_query *))
{
    struct partition_command *command = NULL;

    if (!command_service(console, values->name))
        return;
    command = calloc(1, sizeof(*command));
    if (command) {
        *command = (struct partition_command){console, *values, run};
        if (!status_query_start(console->daemon, is_named, command->values.name, on_status,
                                command))
            return;
    }
    free(command);
    console_answer(console, COMMAND_FAILED, "Out of memory");
}

/* ---- create ---- */

/* Clients whose streams may run on any multiprocessor. One that is bound to partitions and has none
 * has no streams. */
static unsigned count_outside(const struct status_query *query)
{
    unsigned count = 0;

    for (unsigned i = 0; i < query->report_count; i++)
        for (unsigned j = 0; j < query->reports[i].client_count; j++)
            count += !query->reports[i].clients[j].limits.fixed_only;
    return count;
}

static void announce(struct console *console, const struct service *service,
                     const struct static_partition *partition)
{
    if (is_created(console->daemon, service, partition))
        console_print(console, "SM partition '%s' created on device %s (sm-count=%u)",
                      partition->name, partition->uuid, static_partitions_sms(partition));
    else
        console_print(console,
                      "SM partition '%s' configured on device %s; it is cut when server '%s' "
                      "starts",
                      partition->name, device_of(partition), service->name);
    console_print(console, "CUDA_MPS_SM_PARTITION=%s/%s", device_of(partition), partition->id);
    console_done(console, COMMAND_OK);
}

/* Where the devices are known, the partition gets its place at once. */
static void enter_partition(struct console *console, struct service *service,
                            const struct grammar_values *values)
{
    struct static_partitions *partitions = &service->partitions;
    struct static_partition *partition = static_partitions_define(
        partitions, values->partition, values->device, values->chunks, values->yes);
    if (partition) {
        partition->is_shareable = values->lent;
        partition->most_chunks = values->most;
    }
    int error = !partition                         ? -ENOMEM
                : partitions->devices.device_count ? static_partitions_place(partitions, partition)
                                                   : 0;

    if (!error) {
        partitions->on = true;
        announce(console, service, partition);
        return;
    }
    if (partition)
        static_partitions_remove(partitions, partition);
    if (error == -ENOMEM)
        console_answer(console, COMMAND_FAILED, "There cannot be more SM partitions");
    else if (error == -ENODEV) {
        console_print(console,
                      "Server '%s' has not just one device that is called %s; see device "
                      "list --server=%s",
                      service->name, values->device, service->name);
        console_done(console, COMMAND_FAILED);
    } else {
        console_print(console,
                      "Failed to fulfill the requested SM partition of %u chunks, error "
                      "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION",
                      values->chunks);
        console_done(console, COMMAND_FAILED);
    }
}

static void create_partition(struct partition_command *command, struct service *service,
                             const struct status_query *query)
{
    struct console *console = command->console;
    const struct grammar_values *values = &command->values;
    unsigned outside = count_outside(query);

    if (static_partitions_named(&service->partitions, values->partition, values->device)) {
        console_print(console, "SM partition '%s' exists already on device %s", values->partition,
                      values->device);
        console_done(console, COMMAND_FAILED);
    } else if (outside) {
        console_print(
            console, "Server '%s' has %u client%s outside of SM partitions; terminate %s first",
            service->name, outside, outside == 1 ? "" : "s", outside == 1 ? "it" : "them");
        console_done(console, COMMAND_FAILED);
    } else {
        enter_partition(console, service, values);
    }
}

void run_sm_partition_create(struct console *console, const struct grammar_values *values)
{
    query_clients(console, values, create_partition);
}

/* ---- delete ---- */

static unsigned count_inside(const struct daemon *daemon, const struct status_query *query,
                             const struct static_partition *partition)
{
    unsigned count = 0;

    for (unsigned i = 0; i < query->report_count; i++) {
        const struct status_report *report = &query->reports[i];
        const struct server_process *server =
            server_process_by_pid((struct daemon *)daemon, report->server.pid);

        for (unsigned j = 0; server && j < report->client_count; j++)
            count +=
                static_partitions_holds(partition, &server->ready, &report->clients[j].limits) ||
                static_partitions_lends(partition, &server->ready, &report->clients[j].limits);
    }
    return count;
}

static void delete_partition(struct partition_command *command, struct service *service,
                             const struct status_query *query)
{
    struct console *console = command->console;
    struct static_partition *partition = static_partitions_named(
        &service->partitions, command->values.partition, command->values.device);
    unsigned clients = partition ? count_inside(console->daemon, query, partition) : 0;

    if (!partition) {
        console_print(console, "SM partition '%s' not found on device %s of server '%s'",
                      command->values.partition, command->values.device, service->name);
        console_done(console, COMMAND_FAILED);
    } else if (clients) {
        console_print(console, "SM partition '%s' has %u client%s; terminate %s first",
                      partition->name, clients, clients == 1 ? "" : "s",
                      clients == 1 ? "it" : "them");
        console_done(console, COMMAND_FAILED);
    } else {
        console_print(console, "SM partition '%s' deleted from device %s", partition->name,
                      device_of(partition));
        static_partitions_remove(&service->partitions, partition);
        service->partitions.on = service_needs_partitions(service);
        console_done(console, COMMAND_OK);
    }
}

void run_sm_partition_delete(struct console *console, const struct grammar_values *values)
{
    query_clients(console, values, delete_partition);
}

/* ---- list ---- */

static const char *const titles[] = {"server", "device",       "name",
                                     "chunks", "sm-count",     "include-remainder",
                                     "status", "visible-uuid", NULL};

static void add_partition(struct list_view *view, const struct service *service,
                          const struct static_partition *partition)
{
    const struct server_process *server = server_process_find(view->console->daemon, service->name);
    bool runs = server && server->state == SERVER_ACTIVE;
    char chunks[16], sms[16] = "-", visible[128];

    text_format(chunks, sizeof(chunks), "%u", partition->chunks);
    if (*partition->uuid)
        text_format(sms, sizeof(sms), "%u", static_partitions_sms(partition));
    text_format(visible, sizeof(visible), "%s/%s", device_of(partition), partition->id);
    table_add(&view->table,
              (const char *[]){service->name, device_of(partition), partition->name, chunks, sms,
                               partition->takes_remainder ? "true" : "false",
                               !runs              ? "configured"
                               : *partition->uuid ? "created"
                                                  : "failed",
                               visible});
}

/* The unallocated rest of a device, as a row of its own. */
static void add_rest(struct list_view *view, const struct service *service,
                     const struct server_device *device)
{
    char uuid[GPU_UUID_TEXT], chunks[16], sms[16];
    unsigned used_sms = 0, used;

    device_uuid_text(device, uuid);
    used = static_partitions_used_chunks(&service->partitions, uuid);
    for (unsigned i = 0; i < service->partitions.count; i++)
        if (!strcmp(service->partitions.partition[i].uuid, uuid))
            used_sms += static_partitions_sms(&service->partitions.partition[i]);
    text_format(chunks, sizeof(chunks), "%u", static_partitions_chunks(device, true) - used);
    text_format(sms, sizeof(sms), "%u", device->sm_count - used_sms);
    table_add(&view->table,
              (const char *[]){service->name, uuid, "-", chunks, sms, "-", "unallocated", "-"});
}

static void add_service(struct list_view *view, const struct service *service)
{
    const struct static_partitions *partitions = &service->partitions;
    const char *device = view->values.device;

    for (unsigned i = 0; i < partitions->count; i++)
        if (!*device ||
            static_partitions_is_on_device(partitions, &partitions->partition[i], device))
            add_partition(view, service, &partitions->partition[i]);
    for (unsigned i = 0; i < partitions->devices.device_count; i++)
        if (!*device || device_is_named(device, &partitions->devices.devices[i], i))
            add_rest(view, service, &partitions->devices.devices[i]);
}

/* The server of a user needs no service, and has no partitions then. */
static void fill_partitions(struct list_view *view, const struct status_report *report)
{
    const char *device = view->values.device;
    struct service user = {.daemon = view->console->daemon};

    if (service_find(view->console->daemon, report->server.name) ||
        !(view->values.all || *view->values.name))
        return;
    text_copy(user.name, sizeof(user.name), report->server.name);
    for (unsigned i = 0; i < report->server.device_count; i++)
        if (!*device || device_is_named(device, &report->server.devices[i], i))
            add_rest(view, &user, &report->server.devices[i]);
}

/* Servers without partitions are shown when they are asked for. */
static void add_partitions(struct list_view *view)
{
    list_for_each (struct service, service, &view->console->daemon->services, link) {
        bool asked_for = view->values.all || *view->values.name;

        if (list_view_may_show(view, service) && (asked_for || service->partitions.count))
            add_service(view, service);
    }
}

void run_sm_partition_list(struct console *console, const struct grammar_values *values)
{
    static const struct list_view_type type = {titles, 8, fill_partitions, add_partitions};

    list_view_show(console, values, &type);
}
