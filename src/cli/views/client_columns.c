/* SPDX-License-Identifier: Apache-2.0 */
/* See client_columns.h. */
#include "client_columns.h"

#include <stdio.h>
#include <string.h>

#include "client_class.h"
#include "text.h"
#include "view_text.h"

/* A call of a client that has lasted for less is not shown. */
#define CALL_SHOWN_MS 1000u

#define CELL char cell[COLUMN_CELL]

static void copy(CELL, const char *text)
{
    text_copy(cell, COLUMN_CELL, text);
}

/* ---- who ---- */

static void format_pid(const struct client_row *row, CELL)
{
    *cell = '\0';
    if (row->client)
        text_format(cell, COLUMN_CELL, "%d", row->client->row.identity.pid);
}

static double value_pid(const struct client_row *row)
{
    return row->client ? -(double)row->client->row.identity.pid : 0;
}

static void format_id(const struct client_row *row, CELL)
{
    *cell = '\0';
    if (row->client)
        text_format(cell, COLUMN_CELL, "%u", row->client->row.id);
}

static void format_user(const struct client_row *row, CELL)
{
    *cell = '\0';
    if (row->client)
        view_format_user(row->client->row.identity.uid, cell);
}

static void format_group(const struct client_row *row, CELL)
{
    const char *group = row->client ? row->client->row.identity.group : "";

    text_format(cell, COLUMN_CELL, "%.*s", HELLO_GROUP_MAX, *group || !row->client ? group : "-");
}

/* "night", or "night/batch" for a namespace of it that is not the default one. */
static void format_server(const struct client_row *row, CELL)
{
    const char *space = row->client ? row->client->row.identity.space : "";
    bool named = *space && strcmp(space, "default");

    *cell = '\0';
    if (row->client)
        text_format(cell, COLUMN_CELL, "%s%s%s", row->server->name, named ? "/" : "",
                    named ? space : "");
}

/* "0" or "0,2": the ordinals a client works on. */
static void format_devices(const struct client_row *row, CELL)
{
    uint64_t mask = row->client ? row->client->row.device_mask : 0;
    size_t used = 0;

    copy(cell, row->client ? "-" : "");
    for (unsigned i = 0; i < SERVER_MAX_DEVICES && used + 4 < 40; i++)
        if (mask & (1ull << i))
            used += (size_t)snprintf(cell + used, COLUMN_CELL - used, "%s%u", used ? "," : "", i);
}

/* The command line, and what is special about the client now. */
static void format_command(const struct client_row *row, CELL)
{
    const struct server_status_row *status = row->client ? &row->client->row : NULL;
    size_t used;

    if (!status) {
        text_format(cell, COLUMN_CELL, "%s: %u program%s", row->group, row->count,
                    row->count == 1 ? "" : "s");
        return;
    }
    text_format(cell, COLUMN_CELL, "%s%.*s%s", *row->group ? "  " : "",
                (int)sizeof(status->identity.command), status->identity.command,
                status->state == SERVER_CLIENT_INACTIVE ? "  (ending)"
                : status->suspended == 2                ? "  (locked)"
                : status->suspended                     ? "  (suspended)"
                : status->evicted                       ? "  (evicted)"
                                                        : "");
    used = strlen(cell);
    if (status->call_ms >= CALL_SHOWN_MS)
        text_format(cell + used, COLUMN_CELL - used, "  (in %.*s for %.1fs)",
                    (int)sizeof(status->call), status->call, (double)status->call_ms / 1000);
}

/* ---- limits ---- */

/* "25%", and what else is special about it: "25% below". */
static void format_share(const struct client_row *row, CELL)
{
    const struct server_limits *limits = row->client ? &row->client->row.limits : NULL;

    *cell = '\0';
    if (limits && limits->fixed_count)
        text_format(cell, COLUMN_CELL, "%u fixed%s", limits->fixed_count,
                    limits->priority ? " below" : "");
    else if (limits)
        text_format(cell, COLUMN_CELL, "%g%%%s", limits->sm_centipercent / 100.0,
                    limits->priority ? " below" : "");
}

/* The first device that it works on; device 0 before it works on any. */
static unsigned first_device(const struct server_status_row *row)
{
    return row->device_mask ? (unsigned)__builtin_ctzll(row->device_mask) % SERVER_MAX_DEVICES : 0;
}

static double value_granted(const struct client_row *row)
{
    const struct server_status_row *status = row->client ? &row->client->row : NULL;

    return status ? status->sm_granted[first_device(status)] : 0;
}

static void format_granted(const struct client_row *row, CELL)
{
    if (row->client)
        text_format(cell, COLUMN_CELL, "%.0f", value_granted(row));
    else
        *cell = '\0';
}

static double value_share(const struct client_row *row)
{
    return row->client ? row->client->row.limits.sm_centipercent : 0;
}

static void format_ceiling(const struct client_row *row, CELL)
{
    if (row->memory_limit)
        view_format_bytes(row->memory_limit, cell);
    else
        copy(cell, row->client ? "-" : "");
}

static double value_ceiling(const struct client_row *row)
{
    return (double)row->memory_limit;
}

static void format_priority(const struct client_row *row, CELL)
{
    copy(cell, !row->client ? "" : row->client->row.limits.priority ? "below" : "normal");
}

/* ---- use ---- */

static void format_memory(const struct client_row *row, CELL)
{
    view_format_bytes(row->memory, cell);
}

static double value_memory(const struct client_row *row)
{
    return (double)row->memory;
}

static void format_swapped(const struct client_row *row, CELL)
{
    view_format_bytes(row->memory_swapped, cell);
}

static double value_swapped(const struct client_row *row)
{
    return (double)row->memory_swapped;
}

static void format_peak(const struct client_row *row, CELL)
{
    view_format_bytes(row->memory_peak, cell);
}

static double value_peak(const struct client_row *row)
{
    return (double)row->memory_peak;
}

/* Of its limit, else of the memory of its devices: "[####      ]". */
static void format_bar(const struct client_row *row, CELL)
{
    uint64_t whole = row->memory_limit ? row->memory_limit : row->memory_total;
    double share = whole ? (double)row->memory / (double)whole : 0;
    int filled = (int)((share > 1 ? 1 : share) * 10 + 0.5);

    if (row->memory && !filled)
        filled = 1;
    text_format(cell, COLUMN_CELL, "[%.*s%*s]", filled, "##########", 10 - filled, "");
}

static void format_launches(const struct client_row *row, CELL)
{
    text_format(cell, COLUMN_CELL, "%llu", (unsigned long long)row->launches);
}

static double value_launches(const struct client_row *row)
{
    return (double)row->launches;
}

static void format_copies(const struct client_row *row, CELL)
{
    text_format(cell, COLUMN_CELL, "%llu", (unsigned long long)row->copies);
}

static double value_copies(const struct client_row *row)
{
    return (double)row->copies;
}

static void format_percent(double share, CELL)
{
    text_format(cell, COLUMN_CELL, "%.1f", 100 * share);
}

static void format_class(const struct client_row *row, CELL)
{
    copy(cell, row->client ? client_class_name(row->client->row.limits.class) : "");
}

static void format_lane(const struct client_row *row, CELL)
{
    *cell = '\0';
    if (row->client)
        text_format(cell, COLUMN_CELL, "%.*s", (int)sizeof(row->server->lane), row->server->lane);
}

static void format_sm_use(const struct client_row *row, CELL)
{
    format_percent(row->sm_use, cell);
}

static double value_sm_use(const struct client_row *row)
{
    return row->sm_use;
}

static void format_gpu_use(const struct client_row *row, CELL)
{
    format_percent(row->gpu_use, cell);
}

static double value_gpu_use(const struct client_row *row)
{
    return row->gpu_use;
}

/* The other client's call that it was in a call because of, the last time. */
static void format_cause(const struct client_row *row, CELL)
{
    const char *cause = row->client ? row->client->row.usage.stall_cause : "";

    text_format(cell, COLUMN_CELL, "%.*s", (int)sizeof(((struct server_usage *)NULL)->stall_cause),
                *cause ? cause : "-");
}

/* 950, 12.3k, 1.2M. */
static void format_launch_rate(const struct client_row *row, CELL)
{
    double rate = row->launches_per_s;

    if (rate < 1000)
        text_format(cell, COLUMN_CELL, "%.0f", rate);
    else if (rate < 1e6)
        text_format(cell, COLUMN_CELL, "%.1fk", rate / 1e3);
    else
        text_format(cell, COLUMN_CELL, "%.1fM", rate / 1e6);
}

static double value_launch_rate(const struct client_row *row)
{
    return row->launches_per_s;
}

static void format_copy_rate(const struct client_row *row, CELL)
{
    text_format(cell, COLUMN_CELL, "%.2f", row->bytes_per_s / 1e9);
}

static double value_copy_rate(const struct client_row *row)
{
    return row->bytes_per_s;
}

static void format_waiting(const struct client_row *row, CELL)
{
    if (row->call_ms)
        text_format(cell, COLUMN_CELL, "%.1fs", (double)row->call_ms / 1000);
    else
        copy(cell, "-");
}

static double value_waiting(const struct client_row *row)
{
    return (double)row->call_ms;
}

static void format_rest(const struct client_row *row, CELL)
{
    if (row->client)
        view_format_duration((long long)(row->client->row.rests_ms / 1000), cell);
    else
        *cell = '\0';
}

static double value_rest(const struct client_row *row)
{
    return row->client ? (double)row->client->row.rests_ms : 0;
}

static void format_since(const struct client_row *row, CELL)
{
    *cell = '\0';
    if (row->client)
        view_format_since(row->client->row.identity.since, cell);
}

static double value_since(const struct client_row *row)
{
    return row->client ? -(double)row->client->row.identity.since : 0;
}

/* ---- the table ---- */

const struct client_column client_columns[] = {
    {"pid", "PID", "process id", 8, 0, false, format_pid, value_pid},
    {"id", "ID", "of the client in its server", 5, 20, false, format_id, NULL},
    {"user", "USER", "who runs it", 10, 2, false, format_user, NULL},
    {"group", "GROUP", "of funnel run --group", 10, 9, false, format_group, NULL},
    {"class", "CLASS", "of funnel run --class", 8, 10, false, format_class, NULL},
    {"lane", "LANE", "main, batch, quarantine: its server", 6, 14, false, format_lane, NULL},
    {"server", "SERVER", "and its namespace", 12, 8, false, format_server, NULL},
    {"device", "DEVICE", "ordinals that it works on", 7, 7, false, format_devices, NULL},
    {"memory", "MEMORY", "device memory that it holds: resident", 10, 1, true, format_memory,
     value_memory},
    {"peak", "PEAK", "the most that it has held", 10, 15, true, format_peak, value_peak},
    {"swapped", "SWAPPED", "device memory of it that is in the host's", 10, 16, true,
     format_swapped, value_swapped},
    {"bar", "MEM BAR", "memory of its limit, else of the device", 12, 4, true, format_bar,
     value_memory},
    {"limit", "LIMIT", "of its memory", 10, 6, true, format_ceiling, value_ceiling},
    {"sms", "SMS", "share of the multiprocessors", 10, 3, true, format_share, value_share},
    {"granted", "GRANTED", "multiprocessors of the first device that it works on", 7, 8, true,
     format_granted, value_granted},
    {"priority", "PRIORITY", "normal or below", 9, 14, false, format_priority, NULL},
    {"sm_use", "SM%", "multiprocessors in use now, of a device's", 6, 2, true, format_sm_use,
     value_sm_use},
    {"gpu_use", "GPU%", "time with kernels on a device now; of a group its busiest program's", 6, 9,
     true, format_gpu_use, value_gpu_use},
    {"cause", "LAST WAITED FOR", "the last call of another client that made it wait", 16, 13, false,
     format_cause, NULL},
    {"launches", "LAUNCHES", "so far", 10, 10, true, format_launches, value_launches},
    {"copies", "COPIES", "so far", 8, 12, true, format_copies, value_copies},
    {"launch_rate", "LAUNCH/S", "launches per second", 9, 2, true, format_launch_rate,
     value_launch_rate},
    {"copy_rate", "GB/S", "copied per second", 7, 5, true, format_copy_rate, value_copy_rate},
    {"waiting", "WAITS", "since when it has been in one call", 7, 5, true, format_waiting,
     value_waiting},
    {"rest", "AT REST", "how long it has had neither work nor CUDA calls", 8, 17, true, format_rest,
     value_rest},
    {"since", "SINCE", "how long it has run", 8, 11, true, format_since, value_since},
    {"command", "COMMAND", "command line", 8, 0, false, format_command, NULL},
    {NULL, NULL, NULL, 0, 0, false, NULL, NULL},
};

const struct client_column *client_column_find(const char *name, size_t length)
{
    for (const struct client_column *column = client_columns; column->name; column++)
        if (strlen(column->name) == length && !memcmp(column->name, name, length))
            return column;
    return NULL;
}

int client_columns_parse(const char *names, const struct client_column *ret_columns[COLUMNS_MAX],
                         char *ret_unknown, size_t capacity)
{
    int count = 0;

    for (const char *at = names; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        size_t length = strcspn(at, ",");
        const struct client_column *column = client_column_find(at, length);

        if (!column || count == COLUMNS_MAX) {
            text_format(ret_unknown, capacity, "%.*s", (int)length, at);
            return -1;
        }
        ret_columns[count++] = column;
    }
    return count;
}

int client_column_compare(const struct client_column *column, const struct client_row *a,
                          const struct client_row *b)
{
    static char left[COLUMN_CELL], right[COLUMN_CELL];

    if (column->value)
        return (column->value(a) < column->value(b)) - (column->value(a) > column->value(b));
    column->format(a, left);
    column->format(b, right);
    return strcmp(left, right);
}
