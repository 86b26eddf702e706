/* SPDX-License-Identifier: Apache-2.0 */
/* See view_csv.h. */
#include "view_csv.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "json_output.h"
#include "text.h"
#ifdef HAVE_JANSSON
#include <jansson.h>

#define CELL_MAX 4096

/* The cell at `*at`, which moves behind the comma that ends it; false behind the last one. */
static bool next_cell(const char **at, char cell[CELL_MAX])
{
    bool quoted = false;
    size_t used = 0;

    if (!*at)
        return false;
    for (; **at && (quoted || **at != ','); ++*at) {
        if (**at == '"' && (!quoted || (*at)[1] != '"')) {
            quoted = !quoted;
            continue;
        }
        *at += **at == '"';
        if (used + 1 < CELL_MAX)
            cell[used++] = **at;
    }
    cell[used] = '\0';
    *at = **at ? *at + 1 : NULL;
    return true;
}

/* "PCI ID" and "pci-id" are pci_id. */
static void make_name(char *title)
{
    for (; *title; title++)
        *title = isalnum((unsigned char)*title) ? (char)tolower((unsigned char)*title) : '_';
}

/* A value that is not set or not known is null. */
static json_t *cell_value(const char *cell)
{
    char *end;
    long long number = strtoll(cell, &end, 10);
    json_t *text;

    if (!strcmp(cell, "-"))
        return json_null();
    if (!strcmp(cell, "true") || !strcmp(cell, "false"))
        return json_boolean(*cell == 't');
    if (*cell && !*end && !isspace((unsigned char)*cell))
        return json_integer(number);
    text = json_string(cell);
    return text ? text : json_string("(not UTF-8)");
}

static json_t *row_json(const char *titles, const char *row)
{
    static char title[CELL_MAX], cell[CELL_MAX];
    json_t *json = json_object();

    while (next_cell(&titles, title) && next_cell(&row, cell)) {
        make_name(title);
        json_object_set_new(json, title, cell_value(cell));
    }
    return json;
}

int view_json_of_csv(const struct lines *lines)
{
    json_t *json = json_array();

    for (unsigned i = 1; i < lines->count; i++)
        json_array_append_new(json, row_json(lines->line[0], lines->line[i]));
    if (lines->incomplete) {
        json_decref(json);
        json = NULL;
    }
    return json_output(json);
}

#else

int view_json_of_csv(const struct lines *lines)
{
    return json_output(NULL);
}

#endif
