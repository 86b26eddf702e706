/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots as text. Tables keep to what fits a terminal; --json has everything. */
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "text.h"
#include "view.h"

#define CELL VIEW_CELL

/* A call of a client that has lasted for less is not shown. */
#define CALL_SHOWN_MS 1000u

void view_format_bytes(uint64_t bytes, char cell[CELL])
{
    static const char units[] = "BKMGT";
    double value = (double)bytes;
    int unit = 0;

    for (; value >= 1024 && unit < 4; unit++)
        value /= 1024;
    if (unit == 0)
        text_format(cell, CELL, "%llu B", (unsigned long long)bytes);
    else
        text_format(cell, CELL, "%.*f %ciB", value < 10 ? 1 : 0, value, units[unit]);
}

/* How long ago, in one or two units. */
static void format_since(int64_t since, char cell[CELL])
{
    long long seconds = (long long)time(NULL) - since;

    if (seconds < 0)
        seconds = 0;
    if (seconds < 120)
        text_format(cell, CELL, "%llds", seconds);
    else if (seconds < 2 * 3600)
        text_format(cell, CELL, "%lldm", seconds / 60);
    else if (seconds < 2 * 24 * 3600)
        text_format(cell, CELL, "%lldh %lldm", seconds / 3600, seconds / 60 % 60);
    else
        text_format(cell, CELL, "%lldd %lldh", seconds / 86400, seconds / 3600 % 24);
}

void view_format_user(uint32_t uid, char cell[CELL])
{
    const struct passwd *entry = getpwuid(uid);

    if (entry)
        text_copy(cell, CELL, entry->pw_name);
    else
        text_format(cell, CELL, "%u", uid);
}

/* "25%", and what else is special about it: "25% below". */
static void format_limit(const struct server_limits *limits, char cell[CELL])
{
    if (limits->fixed_count)
        text_format(cell, CELL, "%u fixed%s", limits->fixed_count,
                    limits->priority ? " below" : "");
    else
        text_format(cell, CELL, "%g%%%s", limits->sm_centipercent / 100.0,
                    limits->priority ? " below" : "");
}

/* The lowest of the devices that it uses; of all devices before it uses any. */
static void format_ceiling(const struct server_status_row *row, char cell[CELL])
{
    const uint64_t *limits = row->limits.memory_limit;
    uint64_t least = 0;

    for (unsigned i = 0; i < SERVER_MAX_DEVICES; i++)
        if ((!row->device_mask || row->device_mask & (1ull << i)) && limits[i] &&
            (!least || limits[i] < least))
            least = limits[i];
    if (least)
        view_format_bytes(least, cell);
    else
        text_copy(cell, CELL, "-");
}

/* "0" or "0,2": the ordinals a client works on. */
static void format_devices(uint64_t mask, char cell[CELL])
{
    size_t used = 0;

    text_copy(cell, CELL, "-");
    for (unsigned i = 0; i < SERVER_MAX_DEVICES && used + 4 < CELL; i++)
        if (mask & (1ull << i))
            used += (size_t)snprintf(cell + used, CELL - used, "%s%u", used ? "," : "", i);
}

/* ---- clients ---- */

/* "night", or "night/batch" for a namespace of it that is not the default one. */
static void format_server(const struct snapshot *snapshot, const struct command_client *client,
                          char *cell, size_t size)
{
    const char *space = client->row.identity.space;
    bool named = *space && strcmp(space, "default");

    text_format(cell, size, "%s%s%s", snapshot_server_of(snapshot, client)->name, named ? "/" : "",
                named ? space : "");
}

/* The call that it is in, where that lasts: perhaps it waits for another client's kernel. */
static void format_call(const struct server_status_row *row, char *text, size_t size)
{
    *text = '\0';
    if (row->call_ms >= CALL_SHOWN_MS)
        text_format(text, size, "  (in %.*s for %.1fs)", (int)sizeof(row->call), row->call,
                    (double)row->call_ms / 1000);
}

static void print_client(const struct snapshot *snapshot, const struct command_client *client)
{
    const struct server_status_row *row = &client->row;
    char user[CELL], devices[CELL], memory[CELL], share[CELL], since[CELL], ceiling[CELL];
    char server[2 * SERVER_NAME_MAX], call[2 * CELL];

    format_call(row, call, sizeof(call));
    view_format_user(row->identity.uid, user);
    format_server(snapshot, client, server, sizeof(server));
    format_devices(row->device_mask, devices);
    view_format_bytes(snapshot_memory_of(client), memory);
    format_limit(&row->limits, share);
    format_ceiling(row, ceiling);
    format_since(row->identity.since, since);
    printf("%-8d %-10s %-10.*s %-12s %-7s %-10s %-10s %-10s %-10llu %-8llu %-8s %.*s%s%s\n",
           row->identity.pid, user, (int)sizeof(row->identity.group),
           *row->identity.group ? row->identity.group : "-", server, devices, memory, ceiling,
           share, (unsigned long long)row->launches, (unsigned long long)row->copies, since,
           (int)sizeof(row->identity.command), row->identity.command,
           row->state == SERVER_CLIENT_INACTIVE ? "  (ending)" : "", call);
}

void view_clients(const struct snapshot *snapshot)
{
    printf("%-8s %-10s %-10s %-12s %-7s %-10s %-10s %-10s %-10s %-8s %-8s %s\n", "PID", "USER",
           "GROUP", "SERVER", "DEVICE", "MEMORY", "LIMIT", "SMS", "LAUNCHES", "COPIES", "SINCE",
           "COMMAND");
    for (unsigned i = 0; i < snapshot->client_count; i++)
        print_client(snapshot, &snapshot->clients[i]);
}

/* ---- servers ---- */

static void print_idle_server(const struct command_server *server, const char *user)
{
    printf("%-12s %-8s %-10s %-9s %-7s %-8s %-12s %-8s %s\n", server->name, "-", user, "stopped",
           "-", "-", "-", "-", server->directory);
}

void view_servers(const struct snapshot *snapshot)
{
    printf("%-12s %-8s %-10s %-9s %-7s %-8s %-12s %-8s %s\n", "NAME", "PID", "USER", "STATE",
           "DRIVER", "DEVICES", "CLIENTS", "SINCE", "PIPE DIRECTORY");
    for (unsigned i = 0; i < snapshot->server_count; i++) {
        const struct command_server *server = &snapshot->servers[i];
        char user[CELL], since[CELL], clients[CELL];

        view_format_user(server->uid, user);
        if (!server->pid) {
            print_idle_server(server, user);
            continue;
        }
        format_since(server->since, since);
        text_format(clients, CELL, "%u of %u", server->client_count, server->max_clients);
        printf("%-12s %-8d %-10s %-9s %-7s %-8u %-12s %-8s %s\n", server->name, server->pid, user,
               snapshot_state_name(server), snapshot_driver_name(server->driver),
               server->device_count, clients, since, server->directory);
    }
}

/* ---- devices ---- */

void view_devices(const struct snapshot *snapshot)
{
    printf("%-12s %-7s %-40s %-28s %-5s %-10s %s\n", "SERVER", "DEVICE", "UUID", "NAME", "SMS",
           "MEMORY", "FREE");
    for (unsigned i = 0; i < snapshot->server_count; i++)
        for (unsigned d = 0; d < snapshot->servers[i].device_count; d++) {
            const struct server_device *device = &snapshot->servers[i].devices[d];
            char uuid[SNAPSHOT_UUID_TEXT], total[CELL], unused[CELL];

            snapshot_uuid_text(device, uuid);
            view_format_bytes(device->memory_total, total);
            view_format_bytes(snapshot->servers[i].memory_free[d], unused);
            printf("%-12s %-7u %-40s %-28.*s %-5u %-10s %s\n", snapshot->servers[i].name, d, uuid,
                   (int)sizeof(device->name), device->name, device->sm_count, total, unused);
        }
}

/* ---- everything on one screen ---- */

static void print_server_summary(const struct command_server *server)
{
    char user[CELL], since[CELL];

    view_format_user(server->uid, user);
    format_since(server->since, since);
    if (!server->pid) {
        printf("\nServer %s of user %s starts for its first program, which sets "
               "CUDA_MPS_PIPE_DIRECTORY=%s\n",
               server->name, user, server->directory);
        return;
    }
    printf("\nServer %s (%d) of user %s is %s, for %s; driver: %s; %u client%s\n", server->name,
           server->pid, user, snapshot_state_name(server), since,
           snapshot_driver_name(server->driver), server->client_count,
           server->client_count == 1 ? "" : "s");
    for (unsigned d = 0; d < server->device_count; d++) {
        char total[CELL], unused[CELL];

        view_format_bytes(server->devices[d].memory_total, total);
        view_format_bytes(server->memory_free[d], unused);
        printf("  device %u: %.*s, %u SMs, %s of %s free\n", d,
               (int)sizeof(server->devices[d].name), server->devices[d].name,
               server->devices[d].sm_count, unused, total);
        if (server->devices[d].has_spare)
            printf("    its spare context takes %u MiB\n", server->devices[d].spare_mib);
    }
    if (server->silent_ms)
        printf("  it has sent no heartbeat for %.1fs\n", server->silent_ms / 1000.0);
    if (server->waited_ms >= CALL_SHOWN_MS)
        printf("  clients wait: %.*s\n", (int)sizeof(server->stall), server->stall);
}

void view_status(const struct snapshot *snapshot, const struct paths *paths)
{
    const struct command_daemon *daemon = &snapshot->daemon;
    char user[CELL], since[CELL];

    view_format_user(daemon->uid, user);
    format_since(daemon->since, since);
    printf("Funnel %.*s: daemon %d of user %s%s, for %s\n", (int)sizeof(daemon->version),
           daemon->version, daemon->pid, user, daemon->quitting ? " is ending" : " is running",
           since);
    printf("  pipe directory: %s\n  log directory:  %.*s\n  device:         %.*s\n", paths->pipe,
           (int)sizeof(daemon->log_directory), daemon->log_directory, (int)sizeof(daemon->device),
           daemon->device);
    if (daemon->multiuser || daemon->static_partitioning)
        printf("  mode:           %s%s%s\n", daemon->multiuser ? "one server for all users" : "",
               daemon->multiuser && daemon->static_partitioning ? ", " : "",
               daemon->static_partitioning ? "static partitioning" : "");
    if (daemon->waiting)
        printf("  %u program%s wait%s for a server\n", daemon->waiting,
               daemon->waiting == 1 ? "" : "s", daemon->waiting == 1 ? "s" : "");
    if (snapshot->server_count == 0)
        puts("\nNo server runs: the first program starts one (funnel run -- PROGRAM).");
    for (unsigned i = 0; i < snapshot->server_count; i++)
        print_server_summary(&snapshot->servers[i]);
    if (snapshot->client_count == 0)
        return;
    putchar('\n');
    view_clients(snapshot);
}
