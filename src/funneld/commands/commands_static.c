/* SPDX-License-Identifier: Apache-2.0 */
/* sm_partition and lspart, with NVIDIA's texts but for its literal %s. */
#include <stdlib.h>
#include <string.h>

#include "command_protocol.h"
#include "commands.h"
#include "console.h"
#include "server_process.h"
#include "server_start.h"
#include "service.h"
#include "status_query.h"
#include "text.h"

static void finish_command(struct console *console, int status)
{
    console_done(console, status);
}

/* 0 when the word is not a number of chunks. */
static unsigned chunks_of(const struct grammar_values *values)
{
    uint64_t chunks = 0;

    return text_to_u64(values->object, &chunks) || chunks > 4096 ? 0 : (unsigned)chunks;
}

static void refuse_device(struct console *console, const char *device)
{
    console_print(console,
                  "Usage: sm_partition add DEVICE CHUNKS, and DEVICE has to name one device, which "
                  "%s does not; see device_query",
                  device);
    finish_command(console, COMMAND_REJECTED);
}

static void refuse_chunks(struct console *console, const char *chunks)
{
    console_print(
        console,
        "Usage: sm_partition add DEVICE CHUNKS, and CHUNKS is a number from 1 to 4096, not "
        "%s",
        chunks);
    finish_command(console, COMMAND_REJECTED);
}

static void add_partition(struct console *console, const struct grammar_values *values)
{
    struct static_partitions *partitions = &console->daemon->partitions;
    const struct server_device *device = static_partitions_device(partitions, values->device);
    const struct static_partition *partition = NULL;
    unsigned chunks = chunks_of(values);

    if (!device) {
        refuse_device(console, values->device);
        return;
    }
    partition = static_partitions_add(partitions, device, chunks);
    if (partition)
        console_print(console, "Partition %s/%s created", partition->uuid, partition->id);
    else
        console_print(console,
                      "Failed to fulfill the requested SM partition of %u chunks, error "
                      "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION",
                      chunks);
    finish_command(console, partition ? COMMAND_OK : COMMAND_FAILED);
}

/* ---- commands that have to know the clients of partitions ---- */

struct partition_command {
    struct console *console;
    char name[96]; /* the partition to remove; "" = list all */
};

static unsigned count_clients(const struct console *console, const struct status_query *query,
                              const struct static_partition *partition)
{
    unsigned count = 0;

    for (unsigned i = 0; i < query->report_count; i++) {
        const struct status_report *report = &query->reports[i];
        const struct server_process *server =
            server_process_by_pid(console->daemon, report->server.pid);

        for (unsigned j = 0; server && j < report->client_count; j++)
            count += static_partitions_holds(partition, &server->ready, &report->clients[j].limits);
    }
    return count;
}

static int remove_partition(struct console *console, const struct status_query *query,
                            const char *name)
{
    if (command_report_silent(console, query))
        return COMMAND_FAILED;

    struct static_partitions *partitions = &console->daemon->partitions;
    struct static_partition *partition = static_partitions_find(partitions, name);

    if (!partition) {
        console_print(console, "Partition %s not found", name);
        return COMMAND_REJECTED;
    }
    if (count_clients(console, query, partition)) {
        console_print(console, "Partition %s/%s in use. Terminate all clients before removing.",
                      partition->uuid, partition->id);
        return COMMAND_FAILED;
    }
    console_print(console, "Partition %s/%s removed", partition->uuid, partition->id);
    static_partitions_remove(partitions, partition);
    return COMMAND_OK;
}

#define ROW "%-42s%-18s%-10s%-10s%-10s%-10s%s"

static void print_device(struct console *console, const struct server_device *device)
{
    char uuid[STATIC_PARTITION_UUID], cells[4][16];
    unsigned chunk = static_partitions_chunk_sms(device, false), used;

    device_uuid_text(device, uuid);
    used = static_partitions_used_chunks(&console->daemon->partitions, uuid);
    text_format(cells[0], 16, "%u", static_partitions_chunks(device, false) - used);
    text_format(cells[1], 16, "%u", used);
    text_format(cells[2], 16, "%u", device->sm_count - used * chunk);
    text_format(cells[3], 16, "%u", used * chunk);
    console_print(console, ROW, uuid, "-", cells[0], cells[1], cells[2], cells[3], "-");
}

static void print_partition(struct console *console, const struct status_query *query,
                            const struct static_partition *partition)
{
    char chunks[16], sms[16];

    text_format(chunks, 16, "%u", partition->chunks);
    text_format(sms, 16, "%u", static_partitions_sms(partition));
    console_print(console, ROW, partition->uuid, partition->id, "-", chunks, "-", sms,
                  count_clients(console, query, partition) ? "Yes" : "No");
}

static void list_partitions(struct console *console, const struct status_query *query)
{
    const struct static_partitions *partitions = &console->daemon->partitions;

    console_print(console, ROW, "GPU", "Partition", "free", "used", "free", "used", "clients");
    console_print(console, ROW, "", "", "chunks", "chunks", "SM", "SM", "");
    for (unsigned i = 0; i < partitions->devices.device_count; i++) {
        const struct server_device *device = &partitions->devices.devices[i];
        char uuid[STATIC_PARTITION_UUID];

        print_device(console, device);
        device_uuid_text(device, uuid);
        for (unsigned j = 0; j < partitions->count; j++)
            if (!strcmp(partitions->partition[j].uuid, uuid))
                print_partition(console, query, &partitions->partition[j]);
    }
}

static void on_status(struct status_query *query, void *context)
{
    struct partition_command *command = context;
    struct console *console = command->console;
    int status = COMMAND_OK;

    if (*command->name)
        status = remove_partition(console, query, command->name);
    else
        list_partitions(console, query);
    free(command);
    finish_command(console, status);
}

static void query_partitions(struct console *console, const char *name)
{
    struct partition_command *command = calloc(1, sizeof(*command));

    if (command) {
        command->console = console;
        text_copy(command->name, sizeof(command->name), name);
    }
    if (command && !status_query_start(console->daemon, NULL, NULL, on_status, command))
        return;
    free(command);
    console_print(console, "Out of memory");
    finish_command(console, COMMAND_FAILED);
}

/* ---- the commands ---- */

static void on_started(void *context, const struct server_process *server, bool ready)
{
    struct console *console = context;
    char line[COMMAND_PENDING_MAX];

    text_copy(line, sizeof(line), console->pending);
    *console->pending = '\0';
    if (ready) {
        commands_run(console, line);
        return;
    }
    console_print(console, "Failed to start a server for user %u: %s", (unsigned)server->uid,
                  server->failure_text);
    finish_command(console, COMMAND_FAILED);
}

/* The daemon uses no device itself: it starts a server, and runs the command when that is ready. */
static bool devices_are_known(struct console *console, const char *line)
{
    struct daemon *daemon = console->daemon;
    uid_t uid = daemon->multiuser || daemon->uid ? daemon->server_uid : console->uid;
    struct server_route route = service_route_of_user(daemon, uid, (gid_t)uid, NULL);
    struct server_process *server = server_process_find(daemon, route.name);

    if (daemon->partitions.devices.device_count)
        return true;
    if (!server && server_process_start(daemon, &route, &server))
        server = NULL;
    if (server && server->state == SERVER_INITIALIZING && !server->starter.done) {
        text_copy(console->pending, sizeof(console->pending), line);
        server->starter = (struct start_waiter){on_started, console};
        return false;
    }
    console_print(console, "No server has reported the devices yet; try again");
    finish_command(console, COMMAND_FAILED);
    return false;
}

void run_sm_partition(struct console *console, const struct grammar_values *values)
{
    char line[COMMAND_PENDING_MAX];

    text_format(line, sizeof(line), "sm_partition %s %s %s", values->verb, values->device,
                values->object);
    if (!strcmp(values->verb, "add")) {
        /* A wrong command is refused before a server is started to query the devices. */
        if (!chunks_of(values))
            refuse_chunks(console, values->object);
        else if (devices_are_known(console, line))
            add_partition(console, values);
    } else if (!strcmp(values->verb, "rm")) {
        query_partitions(console, values->object);
    } else {
        console_print(console, "Usage: sm_partition add DEVICE CHUNKS, or sm_partition rm DEVICE "
                               "PARTITION");
        finish_command(console, COMMAND_REJECTED);
    }
}

void run_lspart(struct console *console, const struct grammar_values *values)
{
    if (devices_are_known(console, "lspart"))
        query_partitions(console, "");
}
