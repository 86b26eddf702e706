/* SPDX-License-Identifier: Apache-2.0 */
/* See view_text.h. */
#include "view_text.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli.h"
#include "client_class.h"
#include "client_table.h"
#include "lane_name.h"
#include "text.h"
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
void view_format_since(int64_t since, char cell[CELL])
{
    long long seconds = (long long)time(NULL) - since;

    view_format_duration(seconds < 0 ? 0 : seconds, cell);
}

void view_format_duration(long long seconds, char cell[CELL])
{
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

void view_format_sensors(const struct server_sensors *sensors, char cell[CELL])
{
    double celsius = sensor_value(sensors, SENSOR_TEMPERATURE);
    double watts = sensor_value(sensors, SENSOR_POWER);
    double limit = sensor_value(sensors, SENSOR_POWER_LIMIT);
    char power[CELL] = "", of[CELL] = "";

    *cell = '\0';
    if (celsius >= 0)
        text_format(cell, CELL, "%.0f C", celsius);
    if (limit >= 0)
        text_format(of, CELL, " of %.0f", limit);
    if (watts >= 0)
        text_format(power, CELL, "%s%.0f%s W", *cell ? ", " : "", watts, of);
    text_format(cell + strlen(cell), CELL - strlen(cell), "%s", power);
}

/* ---- clients ---- */

static bool has_class(const struct command_client *client)
{
    return strcmp(client_class_name(client->row.limits.class), "normal");
}

static bool is_swapped(const struct command_client *client)
{
    for (unsigned i = 0; i < SERVER_MAX_DEVICES; i++)
        if (client->row.memory_swapped[i])
            return true;
    return false;
}

static bool is_any(const struct snapshot *snapshot, bool (*is)(const struct command_client *client))
{
    for (unsigned i = 0; i < snapshot->client_count; i++)
        if (is(&snapshot->clients[i]))
            return true;
    return false;
}

/* Columns that would say the same of all programs are left out. */
static const char *usual_columns(const struct snapshot *snapshot)
{
    static char names[160];

    text_format(names, sizeof(names),
                "pid,user,group,%sserver,device,memory,%slimit,sms,granted,launches,copies,since,"
                "command",
                is_any(snapshot, has_class) ? "class,lane," : "",
                is_any(snapshot, is_swapped) ? "swapped," : "");
    return names;
}

int view_clients(const struct snapshot *snapshot, const char *columns)
{
    const struct client_choice everything = {.filter = NULL};
    const struct client_column *shown[COLUMNS_MAX];
    char unknown[VIEW_CELL];
    struct client_table table;
    struct client_rows rows;
    int count = client_columns_parse(columns ? columns : usual_columns(snapshot), shown, unknown,
                                     sizeof(unknown));

    if (count < 0)
        return cli_usage("there is no column %s; funnel help ps lists them", unknown);
    if (client_rows_make(snapshot, NULL, 1, &everything, &rows))
        return cli_fail("out of memory");
    client_table_init(&table, shown, (unsigned)count, &rows, terminal_width());
    client_table_print(&table, &rows, stdout);
    client_rows_fini(&rows);
    return 0;
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
        view_format_since(server->since, since);
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
            char uuid[GPU_UUID_TEXT], total[CELL], unused[CELL];

            device_uuid_text(device, uuid);
            view_format_bytes(device->memory_total, total);
            view_format_bytes(snapshot->servers[i].memory_free[d], unused);
            printf("%-12s %-7u %-40s %-28.*s %-5u %-10s %s\n", snapshot->servers[i].name, d, uuid,
                   (int)sizeof(device->name), device->name, device->sm_count, total, unused);
        }
}

/* ---- everything on one screen ---- */

static void print_code_cache(const struct server_code_cache *cache)
{
    char bytes[CELL];

    if (!*cache->path)
        return;
    view_format_bytes(cache->bytes, bytes);
    printf("  code cache: %u entr%s, %s in %.*s; %u loaded ahead, %u of them used\n",
           cache->entries, cache->entries == 1 ? "y" : "ies", bytes, (int)sizeof(cache->path),
           cache->path, cache->loaded, cache->used);
}

static void print_swap_pool(const struct command_server *server)
{
    char locked[CELL], used[CELL], kept[CELL];

    if (!server->swap_locked)
        return;
    view_format_bytes(server->swap_locked, locked);
    view_format_bytes(server->swap_used, used);
    view_format_bytes(server->swap_kept, kept);
    printf("  swap pool: %s of host memory page-locked, %s of it in use, %s kept of programs that "
           "are back\n",
           locked, used, kept);
}

static void print_lane(const struct command_server *server)
{
    if (lane_name_has_domain(server->name, LANE_DOMAIN_QUARANTINE))
        puts("  it serves programs that have faulted");
    if (lane_name_is_batch(server->name))
        puts("  it is the lane of batch programs, which have the time that others leave");
    if (lane_name_has_domain(server->name, LANE_DOMAIN_NEW))
        puts("  it serves a program that has not yet ended once without a fault");
}

static void print_server_summary(const struct command_server *server)
{
    char user[CELL], since[CELL];

    view_format_user(server->uid, user);
    view_format_since(server->since, since);
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
    print_lane(server);
    if (server->slices_refused)
        puts("  the driver sets no time slices for it: lanes take turns in slices of equal length");
    for (unsigned d = 0; d < server->device_count; d++) {
        char total[CELL], unused[CELL], sensors[CELL];

        view_format_bytes(server->devices[d].memory_total, total);
        view_format_bytes(server->memory_free[d], unused);
        view_format_sensors(&server->sensors[d], sensors);
        printf("  device %u: %.*s, %u SMs, %s of %s free%s%s\n", d,
               (int)sizeof(server->devices[d].name), server->devices[d].name,
               server->devices[d].sm_count, unused, total, *sensors ? ", " : "", sensors);
    }
    if (server->standby_pid)
        printf("  a standby server (%d) %s; it takes about %u MiB of each device\n",
               server->standby_pid, server->standby_ready ? "is ready" : "is starting",
               server->standby_mib);
    print_code_cache(&server->code_cache);
    print_swap_pool(server);
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
    view_format_since(daemon->since, since);
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
    view_clients(snapshot, NULL);
}
