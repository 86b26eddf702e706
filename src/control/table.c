/* SPDX-License-Identifier: Apache-2.0 */
/* See table.h. */
#include "table.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void table_init(struct table *table, const char *const *titles)
{
    *table = (struct table){.titles = titles};
    while (table->columns < TABLE_COLUMNS_MAX && titles[table->columns])
        table->columns++;
}

void table_fini(struct table *table)
{
    for (unsigned i = 0; i < table->rows * table->columns; i++)
        free(table->cells[i]);
    free(table->cells);
    *table = (struct table){.titles = NULL};
}

void table_add(struct table *table, const char *const *cells)
{
    size_t used = (size_t)table->rows * table->columns;
    char **grown = reallocarray(table->cells, used + table->columns, sizeof(*grown));

    if (!grown) {
        table->incomplete = true;
        return;
    }
    table->cells = grown;
    for (unsigned i = 0; i < table->columns; i++) {
        grown[used + i] = strdup(cells[i]);
        table->incomplete |= !grown[used + i];
    }
    table->rows++;
}

int table_column(const struct table *table, const char *title)
{
    for (unsigned i = 0; i < table->columns; i++)
        if (!strcmp(table->titles[i], title))
            return (int)i;
    return -1;
}

static const char *cell(const struct table *table, unsigned row, unsigned column)
{
    const char *text = table->cells[row * table->columns + column];

    return text ? text : "";
}

/* ---- comma-separated values, as RFC 4180 has them ---- */

static void write_csv_cell(FILE *out, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

/* ---- tables ---- */

static unsigned width_of(const struct table *table, unsigned column)
{
    size_t width = strlen(table->titles[column]);

    for (unsigned row = 0; row < table->rows; row++)
        if (strlen(cell(table, row, column)) > width)
            width = strlen(cell(table, row, column));
    return (unsigned)width;
}

static void write_title(FILE *out, const char *title)
{
    for (; *title; title++)
        fputc(toupper((unsigned char)*title), out);
}

/* ---- lines ---- */

/* Row -1 is the header. The last column is not filled up with blanks. */
static void write_line(FILE *out, const struct table *table, int row, unsigned shown, bool csv)
{
    for (unsigned i = 0; i < shown; i++) {
        const char *text = row < 0 ? table->titles[i] : cell(table, (unsigned)row, i);
        int blanks = i + 1 < shown ? (int)width_of(table, i) - (int)strlen(text) + 2 : 0;

        if (csv) {
            fputs(i ? "," : "", out);
            write_csv_cell(out, text);
            continue;
        }
        if (row < 0)
            write_title(out, text);
        else
            fputs(text, out);
        fprintf(out, "%*s", blanks, "");
    }
}

void table_print(const struct table *table, unsigned shown, enum table_format format,
                 void (*line)(void *context, const char *text), void *context)
{
    for (int row = format == TABLE_CSV_NOHEADER ? 0 : -1; row < (int)table->rows; row++) {
        char *text = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);

        if (!out)
            return;
        write_line(out, table, row, shown, format != TABLE_PLAIN);
        if (fclose(out) == 0)
            line(context, text);
        free(text);
    }
}
