/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over lines of the usage journal, by user, group and others. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define USAGE_KEYS_MAX 5
#define USAGE_KEY_TEXT 96

/* By what sums are made. */
enum usage_key { USAGE_USER, USAGE_GROUP, USAGE_SERVER, USAGE_NAMESPACE, USAGE_DAY };

/* The use of several programs together. */
struct usage_row {
    char key[USAGE_KEYS_MAX][USAGE_KEY_TEXT];
    uint64_t clients, failed;
    double gpu_seconds, sm_seconds, stalled_seconds;
    uint64_t memory_peak; /* bytes of one device, the most of all */
    uint64_t launches, copied_bytes;
};

struct usage_report {
    enum usage_key by[USAGE_KEYS_MAX];
    unsigned key_count;
    int64_t since, until; /* programs that ended then: since <= ended < until */
    struct usage_row *row;
    unsigned count;
    unsigned unreadable; /* lines */
    bool incomplete;     /* memory ran out */
};

/* The name of a key, as options and JSON have it. */
const char *usage_key_name(enum usage_key key);

/* "user,group": false for an unknown or repeated name. */
bool usage_report_parse_keys(struct usage_report *report, const char *names);

/* Adds a line of the journal; `report` is a struct usage_report. */
void usage_report_add(void *report, const char *line);

/* The rows with the most SM time come first. */
void usage_report_sort(struct usage_report *report);

void usage_report_fini(struct usage_report *report);
