/* SPDX-License-Identifier: Apache-2.0 */
/* See top_history.h. */
#include "top_history.h"

#include <stdlib.h>
#include <string.h>

struct top_program {
    pid_t server_pid;
    uint32_t id; /* in its server */
    bool runs;   /* in the newest sample */
    struct top_series sm_use;
};

static void add_share(struct top_series *series, double share)
{
    series->share[series->count++ % TOP_HISTORY_LENGTH] = (float)(share < 0   ? 0
                                                                  : share > 1 ? 1
                                                                              : share);
}

float top_series_share(const struct top_series *series, unsigned back)
{
    if (back >= series->count || back >= TOP_HISTORY_LENGTH)
        return -1;
    return series->share[(series->count - 1 - back) % TOP_HISTORY_LENGTH];
}

/* ---- devices ---- */

static struct top_device *device_of(struct top_history *history, const struct server_device *device)
{
    for (unsigned i = 0; i < history->device_count; i++)
        if (!memcmp(history->device[i].uuid, device->uuid, sizeof(device->uuid)))
            return &history->device[i];
    return NULL;
}

/* One that no server has any more leaves the list. */
static void find_devices(struct top_history *history, const struct snapshot *now)
{
    static struct top_history fresh;

    fresh.device_count = 0;
    for (unsigned i = 0; i < now->server_count; i++)
        for (unsigned d = 0; d < now->servers[i].device_count; d++) {
            const struct server_device *device = &now->servers[i].devices[d];
            const struct top_device *known = device_of(history, device);
            struct top_device *next = &fresh.device[fresh.device_count];

            if (device_of(&fresh, device) || fresh.device_count == TOP_DEVICES_MAX)
                continue;
            *next = known ? *known : (struct top_device){.ordinal = d};
            next->device = device;
            memcpy(next->uuid, device->uuid, sizeof(next->uuid));
            next->memory_used = device->memory_total - now->servers[i].memory_free[d];
            next->sensors = now->servers[i].sensors[d];
            fresh.device_count++;
        }
    memcpy(history->device, fresh.device, sizeof(history->device));
    history->device_count = fresh.device_count;
}

/* ---- programs ---- */

static struct top_program *program_of(const struct top_history *history,
                                      const struct command_client *client)
{
    for (unsigned i = 0; i < history->program_count; i++)
        if (history->programs[i].server_pid == client->server_pid &&
            history->programs[i].id == client->row.id)
            return &history->programs[i];
    return NULL;
}

/* NULL where memory has run out. */
static struct top_program *program_add(struct top_history *history,
                                       const struct command_client *client)
{
    struct top_program *grown =
        reallocarray(history->programs, history->program_count + 1, sizeof(*grown));

    if (!grown)
        return NULL;
    history->programs = grown;
    grown += history->program_count++;
    *grown = (struct top_program){.server_pid = client->server_pid, .id = client->row.id};
    return grown;
}

static void forget_ended(struct top_history *history)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < history->program_count; i++)
        if (history->programs[i].runs) {
            history->programs[kept] = history->programs[i];
            history->programs[kept++].runs = false;
        }
    history->program_count = kept;
}

/* ---- shares ---- */

/* Of the multiprocessors of one device, since the sample before. */
static double share_of(const struct top_sample *sample, const struct command_client *client,
                       unsigned ordinal)
{
    const struct command_client *then =
        sample->has_before ? snapshot_find_client(&sample->before, client) : NULL;
    unsigned sms = snapshot_server_of(&sample->now, client)->devices[ordinal].sm_count;
    uint64_t used = then ? client->row.usage.sm_ns[ordinal] - then->row.usage.sm_ns[ordinal] : 0;

    return sms ? (double)used / 1e9 / sample->seconds / sms : 0;
}

/* Adds the client's share of each device to that device's sum; the sum of the client. */
static double add_client(struct top_history *history, const struct top_sample *sample,
                         const struct command_client *client, double sums[TOP_DEVICES_MAX])
{
    const struct command_server *server = snapshot_server_of(&sample->now, client);
    double total = 0;

    for (unsigned d = 0; d < server->device_count; d++) {
        const struct top_device *device = device_of(history, &server->devices[d]);
        double share = share_of(sample, client, d);

        if (device)
            sums[device - history->device] += share;
        total += share;
    }
    return total;
}

void top_history_add(struct top_history *history, const struct top_sample *sample)
{
    double sums[TOP_DEVICES_MAX] = {0};

    find_devices(history, &sample->now);
    for (unsigned i = 0; i < sample->now.client_count; i++) {
        const struct command_client *client = &sample->now.clients[i];
        struct top_program *program = program_of(history, client);
        double share = add_client(history, sample, client, sums);

        if (!program)
            program = program_add(history, client);
        if (!program)
            continue;
        program->runs = true;
        add_share(&program->sm_use, share);
    }
    forget_ended(history);
    for (unsigned i = 0; i < history->device_count; i++)
        add_share(&history->device[i].sm_use, sums[i]);
}

const struct top_series *top_history_of(const struct top_history *history,
                                        const struct command_client *client)
{
    const struct top_program *program = program_of(history, client);

    return program ? &program->sm_use : NULL;
}

void top_history_fini(struct top_history *history)
{
    free(history->programs);
    *history = (struct top_history){.device_count = 0};
}
