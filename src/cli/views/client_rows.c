/* SPDX-License-Identifier: Apache-2.0 */
/* See client_rows.h. */
#include "client_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client_columns.h"
#include "text.h"

/* ---- one client ---- */

/* The lowest limit of the devices that it uses; of all devices before it uses any. */
static uint64_t least_limit(const struct server_status_row *row)
{
    uint64_t least = 0;

    for (unsigned i = 0; i < SERVER_MAX_DEVICES; i++)
        if ((!row->device_mask || row->device_mask & (1ull << i)) && row->limits.memory_limit[i] &&
            (!least || row->limits.memory_limit[i] < least))
            least = row->limits.memory_limit[i];
    return least;
}

static void add_memory(struct client_row *row)
{
    const struct server_status_row *status = &row->client->row;

    row->memory_limit = least_limit(status);
    for (unsigned i = 0; i < SERVER_MAX_DEVICES; i++) {
        row->memory += status->memory_used[i];
        row->memory_peak += status->memory_peak[i];
        row->memory_swapped += status->memory_swapped[i];
        if (i < row->server->device_count && status->device_mask & (1ull << i))
            row->memory_total += row->server->devices[i].memory_total;
    }
}

/* Of all devices together, so more than 1 for a client that fills two. */
static void add_device_use(struct client_row *row, const struct command_client *then,
                           double seconds)
{
    const struct server_usage *now = &row->client->row.usage;

    for (unsigned i = 0; i < row->server->device_count; i++) {
        uint64_t gpu = now->gpu_ns[i] - (then ? then->row.usage.gpu_ns[i] : 0);
        uint64_t sm = now->sm_ns[i] - (then ? then->row.usage.sm_ns[i] : 0);
        unsigned sms = row->server->devices[i].sm_count;

        row->gpu_use += (double)gpu / 1e9 / seconds;
        row->sm_use += sms ? (double)sm / 1e9 / seconds / sms : 0;
    }
}

/* `seconds` since `then`; a client that is new is measured from its start on. */
static void add_rates(struct client_row *row, const struct command_client *then, double seconds)
{
    const struct server_status_row *status = &row->client->row;
    uint64_t launches = then ? then->row.usage.launches : 0;
    uint64_t copied = server_usage_copied(&status->usage);
    uint64_t before = then ? server_usage_copied(&then->row.usage) : 0;
    double age = (double)(time(NULL) - status->identity.since);

    if (!then)
        seconds = age < 1 ? 1 : age;
    row->launches_per_s = (double)(status->usage.launches - launches) / seconds;
    add_device_use(row, then, seconds);
    row->bytes_per_s = (double)(copied - before) / seconds;
}

static void name_group(struct client_row *row, enum client_grouping grouping)
{
    static const char *const columns[] = {NULL, "user", "group", "server"};
    static char cell[COLUMN_CELL];

    if (grouping == GROUP_NOT)
        return;
    client_column_find(columns[grouping], strlen(columns[grouping]))->format(row, cell);
    text_copy(row->group, sizeof(row->group), cell);
}

static void make_row(struct client_row *row, const struct snapshot *now,
                     const struct snapshot *before, double seconds, unsigned i,
                     enum client_grouping grouping)
{
    const struct command_client *client = &now->clients[i];

    *row = (struct client_row){.client = client,
                               .server = snapshot_server_of(now, client),
                               .count = 1,
                               .launches = client->row.usage.launches,
                               .copies = client->row.usage.copies,
                               .copied_bytes = server_usage_copied(&client->row.usage),
                               .call_ms = client->row.call_ms};
    add_memory(row);
    add_rates(row, snapshot_find_client(before, client), seconds);
    name_group(row, grouping);
}

/* ---- groups ---- */

/* Kernels of several programs overlap, so times with kernels on a device do not add up: a group has
 * the time of its busiest program. */
static void add_to_group(struct client_row *group, const struct client_row *row)
{
    group->count++;
    group->memory += row->memory;
    group->memory_peak += row->memory_peak;
    group->memory_swapped += row->memory_swapped;
    if (row->memory_total > group->memory_total)
        group->memory_total = row->memory_total;
    group->launches += row->launches;
    group->copies += row->copies;
    group->copied_bytes += row->copied_bytes;
    group->launches_per_s += row->launches_per_s;
    group->bytes_per_s += row->bytes_per_s;
    group->sm_use += row->sm_use;
    if (row->gpu_use > group->gpu_use)
        group->gpu_use = row->gpu_use;
    if (row->call_ms > group->call_ms)
        group->call_ms = row->call_ms;
}

/* The array has capacity for as many heads as clients. */
static void add_heads(struct client_rows *rows)
{
    unsigned clients = rows->count;

    for (unsigned i = 0; i < clients; i++) {
        unsigned head = clients;

        while (head < rows->count && strcmp(rows->row[head].group, rows->row[i].group))
            head++;
        if (head == rows->count) {
            struct client_row fresh = {.server = rows->row[i].server};

            text_copy(fresh.group, sizeof(fresh.group), rows->row[i].group);
            rows->row[rows->count++] = fresh;
        }
        add_to_group(&rows->row[head], &rows->row[i]);
    }
}

/* ---- order ---- */

static const struct client_rows *sorted_rows; /* while they are sorted */

static const struct client_row *head_of(const struct client_row *row)
{
    for (unsigned i = 0; i < sorted_rows->count; i++)
        if (!sorted_rows->row[i].client && !strcmp(sorted_rows->row[i].group, row->group))
            return &sorted_rows->row[i];
    return row;
}

static int compare(const struct client_choice *choice, const struct client_row *a,
                   const struct client_row *b)
{
    int order = choice->sort ? client_column_compare(choice->sort, a, b) : 0;

    if (choice->reverse)
        order = -order;
    return order ? order : strcmp(a->group, b->group);
}

/* Groups by their sums; in a group its head first. */
static int compare_in_groups(const void *left, const void *right, void *context)
{
    const struct client_choice *choice = context;
    const struct client_row *a = *(const struct client_row *const *)left;
    const struct client_row *b = *(const struct client_row *const *)right;
    int order = strcmp(a->group, b->group) ? compare(choice, head_of(a), head_of(b)) : 0;

    if (order)
        return order;
    if (!a->client || !b->client)
        return (b->client == NULL) - (a->client == NULL);
    order = compare(choice, a, b);
    return order ? order : (a->client > b->client) - (a->client < b->client);
}

static int sort_rows(struct client_rows *rows, const struct client_choice *choice)
{
    const struct client_row **order = calloc(rows->count + 1, sizeof(*order));
    struct client_row *sorted = calloc(rows->count + 1, sizeof(*sorted));

    if (order && sorted) {
        for (unsigned i = 0; i < rows->count; i++)
            order[i] = &rows->row[i];
        sorted_rows = rows;
        qsort_r(order, rows->count, sizeof(*order), compare_in_groups, (void *)choice);
        for (unsigned i = 0; i < rows->count; i++)
            sorted[i] = *order[i];
        free(rows->row);
        rows->row = sorted;
        free(order);
        return 0;
    }
    free(order);
    free(sorted);
    return -ENOMEM;
}

/* ---- all ---- */

int client_rows_make(const struct snapshot *now, const struct snapshot *before, double seconds,
                     const struct client_choice *choice, struct client_rows *ret_rows)
{
    struct client_rows rows = {.row = calloc(2 * now->client_count + 1, sizeof(*rows.row))};

    if (!rows.row)
        return -ENOMEM;
    for (unsigned i = 0; i < now->client_count; i++) {
        make_row(&rows.row[rows.count], now, before, seconds, i, choice->grouping);
        if (!choice->filter || client_filter_fits(choice->filter, &rows.row[rows.count]))
            rows.count++;
    }
    if (choice->grouping != GROUP_NOT)
        add_heads(&rows);
    if (sort_rows(&rows, choice)) {
        client_rows_fini(&rows);
        return -ENOMEM;
    }
    *ret_rows = rows;
    return 0;
}

void client_rows_fini(struct client_rows *rows)
{
    free(rows->row);
    *rows = (struct client_rows){.count = 0};
}

/* ---- filters ---- */

/* Part by part without regard to case. */
static bool has_part(const struct client_row *row, const char *name, const char *part)
{
    static char cell[COLUMN_CELL];

    client_column_find(name, strlen(name))->format(row, cell);
    return strcasestr(cell, part) != NULL;
}

static bool word_fits(const char *word, const struct client_row *row)
{
    static char cell[COLUMN_CELL];
    const char *equals = strchr(word, '=');
    const struct client_column *column =
        equals ? client_column_find(word, (size_t)(equals - word)) : NULL;

    if (!column)
        return has_part(row, "command", word) || has_part(row, "user", word) ||
               has_part(row, "group", word) || has_part(row, "server", word) ||
               has_part(row, "pid", word);
    column->format(row, cell);
    return !strcmp(cell, equals + 1);
}

/* The next word of `*at`, which moves on; false when there is none. */
static bool next_word(const char **at, char word[COLUMN_CELL])
{
    size_t length;

    *at += strspn(*at, " ");
    length = strcspn(*at, " ");
    text_format(word, COLUMN_CELL, "%.*s", (int)length, *at);
    *at += length;
    return length > 0;
}

bool client_filter_fits(const char *filter, const struct client_row *row)
{
    char word[COLUMN_CELL];

    while (next_word(&filter, word))
        if (!word_fits(word, row))
            return false;
    return true;
}

bool client_filter_is_valid(const char *filter, char *ret_word, size_t capacity)
{
    char word[COLUMN_CELL];

    while (next_word(&filter, word)) {
        size_t length = strcspn(word, "=");

        if (!word[length] || client_column_find(word, length))
            continue;
        text_format(ret_word, capacity, "%.*s", (int)length, word);
        return false;
    }
    return true;
}
