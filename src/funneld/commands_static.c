/* SPDX-License-Identifier: Apache-2.0 */
/* sm_partition and lspart, with NVIDIA's texts but for its literal %s. */
#include <stdlib.h>
#include <string.h>

#include "command_protocol.h"
#include "commands.h"
#include "console.h"
#include "funneld_server.h"
#include "service.h"
#include "survey.h"
#include "text.h"

static void finish(struct console *console, int status)
{
    console_done(console, status);
}

/* 0 for what is no number of chunks. */
static unsigned chunks_of(const struct grammar_values *values)
{
    uint64_t chunks = 0;

    return text_to_u64(values->object, &chunks) || chunks > 4096 ? 0 : (unsigned)chunks;
}

static void refuse_add(struct console *console)
{
    console_print(console, "Usage: sm_partition add DEVICE CHUNKS, and DEVICE has to name one "
                           "device; see device_query");
    finish(console, COMMAND_REJECTED);
}

static void add_partition(struct console *console, const struct grammar_values *values)
{
    struct statics *statics = &console->daemon->statics;
    const struct server_device *device = statics_device(statics, values->device);
    const struct static_partition *partition = NULL;
    unsigned chunks = chunks_of(values);

    if (!device) {
        refuse_add(console);
        return;
    }
    partition = statics_add(statics, device, chunks);
    if (partition)
        console_print(console, "Partition %s/%s created", partition->uuid, partition->id);
    else
        console_print(console,
                      "Failed to fulfill the requested SM partition of %u chunks, error "
                      "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION",
                      chunks);
    finish(console, partition ? COMMAND_OK : COMMAND_FAILED);
}

/* ---- what needs to know who is in a partition ---- */

struct look {
    struct console *console;
    char name[96]; /* the partition to remove; "" = list all */
};

static unsigned count_clients(const struct console *console, const struct survey *survey,
                              const struct static_partition *partition)
{
    unsigned count = 0;

    for (unsigned i = 0; i < survey->part_count; i++) {
        const struct survey_part *part = &survey->parts[i];
        const struct server *server = server_by_pid(console->daemon, part->server.pid);

        for (unsigned j = 0; server && j < part->client_count; j++)
            count += statics_holds(partition, &server->ready, &part->clients[j].limits);
    }
    return count;
}

static int remove_partition(struct console *console, const struct survey *survey, const char *name)
{
    struct statics *statics = &console->daemon->statics;
    struct static_partition *partition = statics_find(statics, name);

    if (!partition) {
        console_print(console, "Partition %s not found", name);
        return COMMAND_REJECTED;
    }
    if (count_clients(console, survey, partition)) {
        console_print(console, "Partition %s/%s in use. Terminate all clients before removing.",
                      partition->uuid, partition->id);
        return COMMAND_FAILED;
    }
    console_print(console, "Partition %s/%s removed", partition->uuid, partition->id);
    statics_remove(statics, partition);
    return COMMAND_OK;
}

#define ROW "%-42s%-18s%-10s%-10s%-10s%-10s%s"

static void print_device(struct console *console, const struct server_device *device)
{
    char uuid[STATICS_UUID], cells[4][16];
    unsigned chunk = statics_chunk_sms(device, false), used;

    device_uuid_text(device, uuid);
    used = statics_used_chunks(&console->daemon->statics, uuid);
    text_format(cells[0], 16, "%u", statics_chunks(device, false) - used);
    text_format(cells[1], 16, "%u", used);
    text_format(cells[2], 16, "%u", device->sm_count - used * chunk);
    text_format(cells[3], 16, "%u", used * chunk);
    console_print(console, ROW, uuid, "-", cells[0], cells[1], cells[2], cells[3], "-");
}

static void print_partition(struct console *console, const struct survey *survey,
                            const struct static_partition *partition)
{
    char chunks[16], sms[16];

    text_format(chunks, 16, "%u", partition->chunks);
    text_format(sms, 16, "%u", statics_sms(partition));
    console_print(console, ROW, partition->uuid, partition->id, "-", chunks, "-", sms,
                  count_clients(console, survey, partition) ? "Yes" : "No");
}

static void list_partitions(struct console *console, const struct survey *survey)
{
    const struct statics *statics = &console->daemon->statics;

    console_print(console, ROW, "GPU", "Partition", "free", "used", "free", "used", "clients");
    console_print(console, ROW, "", "", "chunks", "chunks", "SM", "SM", "");
    for (unsigned i = 0; i < statics->devices.device_count; i++) {
        const struct server_device *device = &statics->devices.devices[i];
        char uuid[STATICS_UUID];

        print_device(console, device);
        device_uuid_text(device, uuid);
        for (unsigned j = 0; j < statics->count; j++)
            if (!strcmp(statics->partition[j].uuid, uuid))
                print_partition(console, survey, &statics->partition[j]);
    }
}

static void on_surveyed(struct survey *survey, void *context)
{
    struct look *look = context;
    struct console *console = look->console;
    int status = COMMAND_OK;

    if (*look->name)
        status = remove_partition(console, survey, look->name);
    else
        list_partitions(console, survey);
    free(look);
    finish(console, status);
}

static void look_round(struct console *console, const char *name)
{
    struct look *look = calloc(1, sizeof(*look));

    if (look) {
        look->console = console;
        text_copy(look->name, sizeof(look->name), name);
    }
    if (look && !survey_start(console->daemon, NULL, NULL, on_surveyed, look))
        return;
    free(look);
    console_print(console, "Out of memory");
    finish(console, COMMAND_FAILED);
}

/* ---- the commands ---- */

/* The daemon touches no device: it has a server look, and goes on when that is ready. */
static bool devices_are_known(struct console *console, const char *line)
{
    struct daemon *daemon = console->daemon;
    uid_t uid = daemon->multiuser || daemon->uid ? daemon->uid : console->uid;
    struct server_route route = service_route_of_user(daemon, uid, (gid_t)uid, NULL);
    struct server *server = server_for(daemon, route.name);

    if (daemon->statics.devices.device_count)
        return true;
    if (!server && server_start(daemon, &route, &server))
        server = NULL;
    if (server && server->state == SERVER_INITIALIZING && !server->starter) {
        text_copy(console->pending, sizeof(console->pending), line);
        server->starter = console;
        return false;
    }
    console_print(console, "No server can tell about the devices yet; try again");
    finish(console, COMMAND_FAILED);
    return false;
}

void run_sm_partition(struct console *console, const struct grammar_values *values)
{
    char line[COMMAND_PENDING_MAX];

    text_format(line, sizeof(line), "sm_partition %s %s %s", values->verb, values->device,
                values->object);
    if (!strcmp(values->verb, "add")) {
        /* Before a server is started to look at the devices: a wrong command changes nothing. */
        if (!chunks_of(values))
            refuse_add(console);
        else if (devices_are_known(console, line))
            add_partition(console, values);
    } else if (!strcmp(values->verb, "rm")) {
        look_round(console, values->object);
    } else {
        console_print(console, "Usage: sm_partition add DEVICE CHUNKS, or sm_partition rm DEVICE "
                               "PARTITION");
        finish(console, COMMAND_REJECTED);
    }
}

void run_lspart(struct console *console, const struct grammar_values *values)
{
    if (devices_are_known(console, "lspart"))
        look_round(console, "");
}
