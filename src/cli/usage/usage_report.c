/* SPDX-License-Identifier: Apache-2.0 */
/* See usage_report.h. */
#include "usage_report.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "text.h"

static const char *const key_names[USAGE_KEYS_MAX] = {"user", "group", "server", "namespace",
                                                      "day"};

const char *usage_key_name(enum usage_key key)
{
    return key_names[key];
}

static bool add_key(struct usage_report *report, const char *name, size_t length)
{
    for (unsigned i = 0; i < USAGE_KEYS_MAX; i++) {
        if (strlen(key_names[i]) != length || memcmp(key_names[i], name, length))
            continue;
        for (unsigned k = 0; k < report->key_count; k++)
            if (report->by[k] == (enum usage_key)i)
                return false;
        report->by[report->key_count++] = (enum usage_key)i;
        return true;
    }
    return false;
}

bool usage_report_parse_keys(struct usage_report *report, const char *names)
{
    size_t length;

    report->key_count = 0;
    for (;; names += length + 1) {
        length = strcspn(names, ",");
        if (!add_key(report, names, length))
            return false;
        if (!names[length])
            return true;
    }
}

static int compare_rows(const void *left, const void *right)
{
    const struct usage_row *a = left, *b = right;
    int order = (a->sm_seconds < b->sm_seconds) - (a->sm_seconds > b->sm_seconds);

    for (unsigned i = 0; i < USAGE_KEYS_MAX && !order; i++)
        order = strcmp(a->key[i], b->key[i]);
    return order;
}

void usage_report_sort(struct usage_report *report)
{
    if (report->count)
        qsort(report->row, report->count, sizeof(*report->row), compare_rows);
}

void usage_report_fini(struct usage_report *report)
{
    free(report->row);
    *report = (struct usage_report){.count = 0};
}

#ifdef HAVE_JANSSON
#include <jansson.h>

static const char *text_of(const json_t *line, const char *name)
{
    const char *text = json_string_value(json_object_get(line, name));

    return text ? text : "";
}

static uint64_t count_of(const json_t *line, const char *name)
{
    json_int_t value = json_integer_value(json_object_get(line, name));

    return value > 0 ? (uint64_t)value : 0;
}

static double seconds_of(const json_t *line, const char *name)
{
    double value = json_number_value(json_object_get(line, name));

    return value > 0 ? value : 0;
}

static void format_day(int64_t ended, char text[USAGE_KEY_TEXT])
{
    time_t time = (time_t)ended;
    struct tm day;

    if (!localtime_r(&time, &day) || !strftime(text, USAGE_KEY_TEXT, "%Y-%m-%d", &day))
        text_copy(text, USAGE_KEY_TEXT, "?");
}

static void read_key(const json_t *line, enum usage_key key, char text[USAGE_KEY_TEXT])
{
    static const char *const members[] = {"user", "group", "server_name", "namespace"};

    if (key == USAGE_DAY)
        format_day((int64_t)count_of(line, "ended"), text);
    else
        text_format(text, USAGE_KEY_TEXT, "%.90s", text_of(line, members[key]));
}

static void add_devices(const json_t *line, struct usage_row *row)
{
    const json_t *devices = json_object_get(line, "devices");

    for (size_t i = 0; i < json_array_size(devices); i++) {
        const json_t *device = json_array_get(devices, i);
        uint64_t peak = count_of(device, "memory_peak");

        row->gpu_seconds += seconds_of(device, "gpu_seconds");
        row->sm_seconds += seconds_of(device, "sm_seconds");
        row->memory_peak = peak > row->memory_peak ? peak : row->memory_peak;
    }
}

static void add_line(const json_t *line, struct usage_row *row)
{
    row->clients += count_of(line, "clients");
    row->failed += count_of(line, "failed");
    row->launches += count_of(line, "launches");
    row->copied_bytes += count_of(line, "copied_to_device_bytes") +
                         count_of(line, "copied_from_device_bytes") +
                         count_of(line, "copied_within_bytes");
    row->stalled_seconds += seconds_of(line, "stalled_seconds");
    add_devices(line, row);
}

/* NULL where memory has run out. */
static struct usage_row *row_of(struct usage_report *report, const struct usage_row *like)
{
    struct usage_row *grown;

    for (unsigned i = 0; i < report->count; i++)
        if (!memcmp(report->row[i].key, like->key, sizeof(like->key)))
            return &report->row[i];
    grown = reallocarray(report->row, report->count + 1, sizeof(*grown));
    if (!grown)
        return NULL;
    report->row = grown;
    report->row[report->count] = *like;
    return &report->row[report->count++];
}

static void add_to_row(struct usage_report *report, const json_t *line)
{
    struct usage_row like = {.clients = 0}, *row;
    int64_t ended = (int64_t)count_of(line, "ended");

    if (ended < report->since || ended >= report->until)
        return;
    for (unsigned i = 0; i < report->key_count; i++)
        read_key(line, report->by[i], like.key[i]);
    row = row_of(report, &like);
    if (row)
        add_line(line, row);
    else
        report->incomplete = true;
}

void usage_report_add(void *context, const char *line)
{
    struct usage_report *report = context;
    json_t *json = json_loads(line, 0, NULL);

    if (json_is_object(json) && json_object_get(json, "ended"))
        add_to_row(report, json);
    else
        report->unreadable++;
    json_decref(json);
}

#else

void usage_report_add(void *report, const char *line)
{
    ((struct usage_report *)report)->unreadable++;
}

#endif
