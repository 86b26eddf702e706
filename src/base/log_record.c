/* SPDX-License-Identifier: Apache-2.0 */
/* See log_record.h. */
#include "log_record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

#define CLIENT "{\"client\":"
#define ERROR ",\"error\":"

size_t log_record_put(const struct log_record *record, char ret_text[LOG_RECORD_MAX])
{
    if (record->is_event)
        return (size_t)snprintf(ret_text, LOG_RECORD_MAX, "\t" CLIENT "%d" ERROR "%d}",
                                (int)record->client, record->error);
    return (size_t)snprintf(ret_text, LOG_RECORD_MAX, "\t" CLIENT "%d}", (int)record->client);
}

/* The number behind such a start, and what follows it. */
static bool read_number(const char **text, const char *start, int *ret_number)
{
    char *end;

    if (!text_starts_with(*text, start))
        return false;
    *ret_number = (int)strtol(*text + strlen(start), &end, 10);
    *text = end;
    return true;
}

static bool read_record(const char *text, struct log_record *ret_record)
{
    struct log_record record = {0};

    if (!read_number(&text, CLIENT, &record.client))
        return false;
    record.is_event = read_number(&text, ERROR, &record.error);
    if (strcmp(text, "}"))
        return false;
    *ret_record = record;
    return true;
}

bool log_record_cut(char *line, struct log_record *ret_record)
{
    char *tab;

    line[strcspn(line, "\n")] = '\0';
    tab = strrchr(line, '\t');
    if (!tab || !read_record(tab + 1, ret_record))
        return false;
    *tab = '\0';
    return true;
}
