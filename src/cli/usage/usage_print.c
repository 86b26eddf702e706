/* SPDX-License-Identifier: Apache-2.0 */
/* See usage_print.h. */
#include "usage_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "json_output.h"
#include "text.h"
#include "view_text.h"

/* ---- text ---- */

static unsigned key_width(const struct usage_report *report, unsigned key)
{
    size_t width = strlen(usage_key_name(report->by[key]));

    for (unsigned i = 0; i < report->count; i++) {
        size_t length = strlen(report->row[i].key[key]);

        width = length > width ? length : width;
    }
    return (unsigned)(width > 32 ? 32 : width);
}

static void print_key(const char *text, unsigned width)
{
    char cell[USAGE_KEY_TEXT];

    text_copy(cell, sizeof(cell), *text ? text : "-");
    text_make_printable(cell);
    printf("%-*.*s ", (int)width, (int)width, cell);
}

static void print_values(const struct usage_row *row)
{
    char peak[VIEW_CELL], copied[VIEW_CELL];

    view_format_bytes(row->memory_peak, peak);
    view_format_bytes(row->copied_bytes, copied);
    printf("%9" PRIu64 " %7" PRIu64 " %10.2f %10.2f %10s %12" PRIu64 " %10s %9.2f\n", row->clients,
           row->failed, row->gpu_seconds / 3600, row->sm_seconds / 3600, peak, row->launches,
           copied, row->stalled_seconds / 3600);
}

static void add_row(struct usage_row *sum, const struct usage_row *row)
{
    sum->clients += row->clients;
    sum->failed += row->failed;
    sum->gpu_seconds += row->gpu_seconds;
    sum->sm_seconds += row->sm_seconds;
    sum->stalled_seconds += row->stalled_seconds;
    sum->launches += row->launches;
    sum->copied_bytes += row->copied_bytes;
    sum->memory_peak = row->memory_peak > sum->memory_peak ? row->memory_peak : sum->memory_peak;
}

static void print_titles(const struct usage_report *report, const unsigned *width)
{
    for (unsigned k = 0; k < report->key_count; k++) {
        char title[USAGE_KEY_TEXT];

        text_copy(title, sizeof(title), usage_key_name(report->by[k]));
        for (char *letter = title; *letter; letter++)
            *letter -= *letter >= 'a' && *letter <= 'z' ? 'a' - 'A' : 0;
        printf("%-*s ", (int)width[k], title);
    }
    printf("%9s %7s %10s %10s %10s %12s %10s %9s\n", "PROGRAMS", "FAILED", "GPU HOURS", "SM HOURS",
           "MEM PEAK", "LAUNCHES", "COPIED", "WAIT H");
}

void usage_print_text(const struct usage_report *report)
{
    struct usage_row sum = {.clients = 0};
    unsigned width[USAGE_KEYS_MAX];

    for (unsigned k = 0; k < report->key_count; k++)
        width[k] = key_width(report, k);
    print_titles(report, width);
    for (unsigned i = 0; i < report->count; i++) {
        for (unsigned k = 0; k < report->key_count; k++)
            print_key(report->row[i].key[k], width[k]);
        print_values(&report->row[i]);
        add_row(&sum, &report->row[i]);
    }
    for (unsigned k = 0; k < report->key_count; k++)
        printf("%-*s ", (int)width[k], k ? "" : "all");
    print_values(&sum);
}

/* ---- comma-separated values ---- */

static void print_csv_text(const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        printf("%s,", text);
        return;
    }
    putchar('"');
    for (; *text; text++)
        printf(*text == '"' ? "\"\"" : "%c", *text);
    printf("\",");
}

void usage_print_csv(const struct usage_report *report)
{
    for (unsigned k = 0; k < report->key_count; k++)
        printf("%s,", usage_key_name(report->by[k]));
    puts("clients,failed,gpu_seconds,sm_seconds,memory_peak,launches,copied_bytes,stalled_seconds");
    for (unsigned i = 0; i < report->count; i++) {
        const struct usage_row *row = &report->row[i];

        for (unsigned k = 0; k < report->key_count; k++)
            print_csv_text(row->key[k]);
        printf("%" PRIu64 ",%" PRIu64 ",%.6f,%.6f,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%.3f\n",
               row->clients, row->failed, row->gpu_seconds, row->sm_seconds, row->memory_peak,
               row->launches, row->copied_bytes, row->stalled_seconds);
    }
}

/* ---- JSON ---- */

#ifdef HAVE_JANSSON
#include <jansson.h>

static json_t *row_json(const struct usage_report *report, const struct usage_row *row)
{
    json_t *json = json_object();

    for (unsigned k = 0; k < report->key_count; k++)
        json_object_set_new(json, usage_key_name(report->by[k]), json_string(row->key[k]));
    json_object_set_new(json, "clients", json_integer((json_int_t)row->clients));
    json_object_set_new(json, "failed", json_integer((json_int_t)row->failed));
    json_object_set_new(json, "gpu_seconds", json_real(row->gpu_seconds));
    json_object_set_new(json, "sm_seconds", json_real(row->sm_seconds));
    json_object_set_new(json, "memory_peak", json_integer((json_int_t)row->memory_peak));
    json_object_set_new(json, "launches", json_integer((json_int_t)row->launches));
    json_object_set_new(json, "copied_bytes", json_integer((json_int_t)row->copied_bytes));
    json_object_set_new(json, "stalled_seconds", json_real(row->stalled_seconds));
    return json;
}

int usage_print_json(const struct usage_report *report)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < report->count; i++)
        json_array_append_new(list, row_json(report, &report->row[i]));
    return json_output(json_pack("{s:I, s:I, s:o}", "since", (json_int_t)report->since, "until",
                                 (json_int_t)report->until, "usage", list));
}

#else

int usage_print_json(const struct usage_report *report)
{
    return json_output(NULL);
}

#endif
