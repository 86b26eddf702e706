/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sm-partition of MPS 3: static partitions of one named server. They are noted at once, and cut
 * when the server runs, for only then is it known what its devices are.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "command_protocol.h"
#include "commands.h"
#include "console.h"
#include "look.h"
#include "service.h"
#include "text.h"

static void answer(struct console *console, int status, const char *sentence)
{
    console_print(console, "%s", sentence);
    console_done(console, status);
}

static bool is_cut(const struct daemon *daemon, const struct service *service,
                   const struct static_partition *partition)
{
    const struct server *server = server_for((struct daemon *)daemon, service->name);

    return server && server->state == SERVER_ACTIVE && *partition->uuid;
}

static const char *device_of(const struct static_partition *partition)
{
    return *partition->uuid ? partition->uuid : partition->device;
}

/* ---- a command that first has to know who is there ---- */

struct asking {
    struct console *console;
    struct grammar_values values;
    void (*go_on)(struct asking *asking, struct service *service, const struct survey *survey);
};

static void on_surveyed(struct survey *survey, void *context)
{
    struct asking *asking = context;
    struct service *service = command_service(asking->console, asking->values.name);

    if (service)
        asking->go_on(asking, service, survey);
    free(asking);
}

static bool is_named(const struct server *server, const void *name)
{
    return !strcmp(server->name, name);
}

static void ask(struct console *console, const struct grammar_values *values,
                void (*go_on)(struct asking *, struct service *, const struct survey *))
{
    struct asking *asking = NULL;

    if (!command_service(console, values->name))
        return;
    asking = calloc(1, sizeof(*asking));
    if (asking) {
        *asking = (struct asking){console, *values, go_on};
        if (!survey_start(console->daemon, is_named, asking->values.name, on_surveyed, asking))
            return;
    }
    free(asking);
    answer(console, COMMAND_FAILED, "Out of memory");
}

/* ---- create ---- */

/* Their streams are anywhere on the device. Who may only have a partition and has none has no
 * streams. */
static unsigned count_outside(const struct survey *survey)
{
    unsigned count = 0;

    for (unsigned i = 0; i < survey->part_count; i++)
        for (unsigned j = 0; j < survey->parts[i].client_count; j++)
            count += !survey->parts[i].clients[j].limits.fixed_only;
    return count;
}

static void announce(struct console *console, const struct service *service,
                     const struct static_partition *partition)
{
    if (is_cut(console->daemon, service, partition))
        console_print(console, "SM partition '%s' created on device %s (sm-count=%u)",
                      partition->name, partition->uuid, statics_sms(partition));
    else
        console_print(console,
                      "SM partition '%s' configured on device %s; it is cut when server '%s' "
                      "starts",
                      partition->name, device_of(partition), service->name);
    console_print(console, "CUDA_MPS_SM_PARTITION=%s/%s", device_of(partition), partition->id);
    console_done(console, COMMAND_OK);
}

/* Finds a place where the devices are known. */
static void add(struct console *console, struct service *service,
                const struct grammar_values *values)
{
    struct statics *statics = &service->statics;
    struct static_partition *partition =
        statics_note(statics, values->partition, values->device, values->chunks, values->yes);
    int error = !partition                      ? -ENOMEM
                : statics->devices.device_count ? statics_place(statics, partition)
                                                : 0;

    if (!error) {
        statics->on = true;
        announce(console, service, partition);
        return;
    }
    if (partition)
        statics_remove(statics, partition);
    if (error == -ENOMEM)
        answer(console, COMMAND_FAILED, "There can be no more SM partitions");
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

static void create(struct asking *asking, struct service *service, const struct survey *survey)
{
    struct console *console = asking->console;
    const struct grammar_values *values = &asking->values;
    unsigned outside = count_outside(survey);

    if (statics_named(&service->statics, values->partition, values->device)) {
        console_print(console, "SM partition '%s' exists already on device %s", values->partition,
                      values->device);
        console_done(console, COMMAND_FAILED);
    } else if (outside) {
        console_print(console,
                      "Server '%s' has %u clients outside of SM partitions; terminate them "
                      "first",
                      service->name, outside);
        console_done(console, COMMAND_FAILED);
    } else {
        add(console, service, values);
    }
}

void run_sm_partition_create(struct console *console, const struct grammar_values *values)
{
    ask(console, values, create);
}

/* ---- delete ---- */

static unsigned count_inside(const struct daemon *daemon, const struct survey *survey,
                             const struct static_partition *partition)
{
    unsigned count = 0;

    for (unsigned i = 0; i < survey->part_count; i++) {
        const struct survey_part *part = &survey->parts[i];
        const struct server *server = server_by_pid((struct daemon *)daemon, part->server.pid);

        for (unsigned j = 0; server && j < part->client_count; j++)
            count += statics_holds(partition, &server->ready, &part->clients[j].limits);
    }
    return count;
}

static void remove_it(struct asking *asking, struct service *service, const struct survey *survey)
{
    struct console *console = asking->console;
    struct static_partition *partition =
        statics_named(&service->statics, asking->values.partition, asking->values.device);
    unsigned clients = partition ? count_inside(console->daemon, survey, partition) : 0;

    if (!partition) {
        console_print(console, "SM partition '%s' not found on device %s of server '%s'",
                      asking->values.partition, asking->values.device, service->name);
        console_done(console, COMMAND_FAILED);
    } else if (clients) {
        console_print(console, "SM partition '%s' has %u clients; terminate them first",
                      partition->name, clients);
        console_done(console, COMMAND_FAILED);
    } else {
        console_print(console, "SM partition '%s' deleted from device %s", partition->name,
                      device_of(partition));
        statics_remove(&service->statics, partition);
        service->statics.on = service->statics.count > 0;
        console_done(console, COMMAND_OK);
    }
}

void run_sm_partition_delete(struct console *console, const struct grammar_values *values)
{
    ask(console, values, remove_it);
}

/* ---- list ---- */

static const char *const titles[] = {"server", "device",       "name",
                                     "chunks", "sm-count",     "include-remainder",
                                     "status", "visible-uuid", NULL};

static void add_partition(struct look *look, const struct service *service,
                          const struct static_partition *partition)
{
    const struct server *server = server_for(look->console->daemon, service->name);
    bool runs = server && server->state == SERVER_ACTIVE;
    char chunks[16], sms[16] = "-", visible[128];

    text_format(chunks, sizeof(chunks), "%u", partition->chunks);
    if (*partition->uuid)
        text_format(sms, sizeof(sms), "%u", statics_sms(partition));
    text_format(visible, sizeof(visible), "%s/%s", device_of(partition), partition->id);
    table_add(&look->table,
              (const char *[]){service->name, device_of(partition), partition->name, chunks, sms,
                               partition->takes_remainder ? "true" : "false",
                               !runs              ? "configured"
                               : *partition->uuid ? "created"
                                                  : "failed",
                               visible});
}

/* What is left of a device, as a row of its own. */
static void add_rest(struct look *look, const struct service *service,
                     const struct server_device *device)
{
    char uuid[DEVICE_UUID_TEXT], chunks[16], sms[16];
    unsigned used_sms = 0, used;

    device_uuid_text(device, uuid);
    used = statics_used_chunks(&service->statics, uuid);
    for (unsigned i = 0; i < service->statics.count; i++)
        if (!strcmp(service->statics.partition[i].uuid, uuid))
            used_sms += statics_sms(&service->statics.partition[i]);
    text_format(chunks, sizeof(chunks), "%u", statics_chunks(device, true) - used);
    text_format(sms, sizeof(sms), "%u", device->sm_count - used_sms);
    table_add(&look->table,
              (const char *[]){service->name, uuid, "-", chunks, sms, "-", "unallocated", "-"});
}

static void add_service(struct look *look, const struct service *service)
{
    const struct statics *statics = &service->statics;
    const char *device = look->values.device;

    for (unsigned i = 0; i < statics->count; i++)
        if (!*device || statics_is_on(statics, &statics->partition[i], device))
            add_partition(look, service, &statics->partition[i]);
    for (unsigned i = 0; i < statics->devices.device_count; i++)
        if (!*device || device_is_named(device, &statics->devices.devices[i], i))
            add_rest(look, service, &statics->devices.devices[i]);
}

/* Servers without partitions are shown when they are asked for. */
static void add_partitions(struct look *look)
{
    list_for_each(struct service, service, &look->console->daemon->services, link)
    {
        bool asked_for = look->values.all || *look->values.name;

        if (look_may_see(look, service) && (asked_for || service->statics.count))
            add_service(look, service);
    }
}

void run_sm_partition_list(struct console *console, const struct grammar_values *values)
{
    static const struct look_subject subject = {titles, 8, NULL, add_partitions};

    look_show(console, values, &subject);
}
