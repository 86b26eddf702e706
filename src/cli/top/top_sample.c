/* SPDX-License-Identifier: Apache-2.0 */
/* See top_sample.h. */
#include "top_sample.h"

#include "clock.h"
#include "fd.h"
#include "text.h"
#include "view_text.h"

void top_sample_init(struct top_sample *sample, const struct paths *paths)
{
    *sample = (struct top_sample){.paths = *paths, .fd = -1};
}

void top_sample_fini(struct top_sample *sample)
{
    if (sample->has_now)
        snapshot_fini(&sample->now);
    if (sample->has_before)
        snapshot_fini(&sample->before);
    fd_close(&sample->fd);
}

static bool read_snapshot(struct top_sample *sample, struct snapshot *ret_snapshot)
{
    int error;

    *sample->reason = '\0';
    if (sample->fd < 0 && command_connect(&sample->paths, &sample->fd, sample->reason))
        return false;
    error = snapshot_read(sample->fd, ret_snapshot);
    if (!error)
        return true;
    text_copy(sample->reason, sizeof(sample->reason), command_lost(error));
    fd_close(&sample->fd);
    return false;
}

bool top_sample_take(struct top_sample *sample)
{
    struct snapshot snapshot;
    double now;

    if (!read_snapshot(sample, &snapshot))
        return false;
    now = (double)clock_ns() / 1e9;
    if (sample->has_before)
        snapshot_fini(&sample->before);
    sample->has_before = sample->has_now;
    sample->before = sample->now;
    sample->now = snapshot;
    sample->has_now = true;
    sample->seconds = now - sample->at > 0.001 ? now - sample->at : 0.001;
    sample->at = now;
    return true;
}

static unsigned count_users(const struct snapshot *snapshot)
{
    unsigned users = 0;

    for (unsigned i = 0; i < snapshot->client_count; i++) {
        unsigned earlier = 0;

        while (snapshot->clients[earlier].row.identity.uid != snapshot->clients[i].row.identity.uid)
            earlier++;
        users += earlier == i;
    }
    return users;
}

void top_sample_title(const struct top_sample *sample, char *line, size_t capacity)
{
    const struct snapshot *now = &sample->now;
    unsigned users = count_users(now), servers = 0;
    char since[VIEW_CELL], waiting[48] = "";

    for (unsigned i = 0; i < now->server_count; i++)
        servers += now->servers[i].pid != 0;
    view_format_since(now->daemon.since, since);
    if (now->daemon.waiting)
        text_format(waiting, sizeof(waiting), ", %u waiting for a server", now->daemon.waiting);
    text_format(line, capacity, "funnel top: %u program%s of %u user%s on %u server%s%s; up %s%s",
                now->client_count, now->client_count == 1 ? "" : "s", users, users == 1 ? "" : "s",
                servers, servers == 1 ? "" : "s", waiting, since,
                now->daemon.quitting ? ", ending" : "");
}

static void format_device(const struct command_server *server, unsigned ordinal, char *line,
                          size_t capacity)
{
    const struct server_device *device = &server->devices[ordinal];
    uint64_t used = device->memory_total - server->memory_free[ordinal];
    int filled = device->memory_total ? (int)(used * 20 / device->memory_total) : 0;
    char total[VIEW_CELL], taken[VIEW_CELL], sensors[VIEW_CELL];

    view_format_bytes(device->memory_total, total);
    view_format_bytes(used, taken);
    view_format_sensors(&server->sensors[ordinal], sensors);
    text_format(line, capacity, "%s, device %u: %.*s, %u SMs, memory [%.*s%*s] %s of %s%s%s%s",
                server->name, ordinal, (int)sizeof(device->name), device->name, device->sm_count,
                filled, "####################", 20 - filled, "", taken, total, *sensors ? ", " : "",
                sensors, server->waited_ms ? ", clients wait" : "");
}

bool top_sample_device(const struct top_sample *sample, unsigned index, char *line, size_t capacity)
{
    for (unsigned i = 0; i < sample->now.server_count; i++) {
        const struct command_server *server = &sample->now.servers[i];

        if (index < server->device_count) {
            format_device(server, index, line, capacity);
            return true;
        }
        index -= server->device_count;
    }
    return false;
}
