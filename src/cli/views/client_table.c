/* SPDX-License-Identifier: Apache-2.0 */
/* See client_table.h. */
#include "client_table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "text.h"

#define LINE_CAPACITY 2048
#define LAST_LEAST 12 /* of the last column, where others are left out for it */

unsigned terminal_width(void)
{
    struct winsize size;

    if (!isatty(STDOUT_FILENO))
        return 0;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_col < 20 ? 80 : size.ws_col;
}

/* Counts characters, not bytes. */
static unsigned width_of(const char *text)
{
    unsigned width = 0;

    for (; *text; text++)
        width += (*text & 0xc0) != 0x80;
    return width;
}

static unsigned widest(const struct client_column *column, const struct client_rows *rows)
{
    static char cell[COLUMN_CELL];
    unsigned width = width_of(column->title);

    width = width + 1 > column->least ? width : column->least - 1;
    for (unsigned i = 0; i < rows->count; i++) {
        column->format(&rows->row[i], cell);
        width = width_of(cell) > width ? width_of(cell) : width;
    }
    return width;
}

static unsigned total(const struct client_table *table)
{
    unsigned width = 0;

    for (unsigned i = 0; i + 1 < table->count; i++)
        width += table->width[i] + 1;
    return width + LAST_LEAST;
}

static void leave_out(struct client_table *table, unsigned which)
{
    for (unsigned i = which; i + 1 < table->count; i++) {
        table->columns[i] = table->columns[i + 1];
        table->width[i] = table->width[i + 1];
    }
    table->count--;
}

/* The one that is missed least; false when none may go. */
static bool leave_one_out(struct client_table *table)
{
    unsigned which = 0;

    for (unsigned i = 0; i < table->count; i++)
        if (table->columns[i]->dispensed > table->columns[which]->dispensed)
            which = i;
    if (!table->columns[which]->dispensed)
        return false;
    leave_out(table, which);
    return true;
}

void client_table_init(struct client_table *table, const struct client_column *const *columns,
                       unsigned count, const struct client_rows *rows, unsigned limit)
{
    *table = (struct client_table){.count = count, .limit = limit};
    for (unsigned i = 0; i < count; i++) {
        table->columns[i] = columns[i];
        table->width[i] = widest(columns[i], rows);
    }
    while (limit && total(table) > limit && leave_one_out(table))
        ;
}

/* Cuts to `limit` characters; what is not printable is ?. */
static void make_fit(char *line, unsigned limit)
{
    unsigned width = 0;

    for (; *line; line++) {
        width += (*line & 0xc0) != 0x80;
        if (limit && width > limit) {
            *line = '\0';
            return;
        }
        if ((unsigned char)*line < ' ' || *line == 0x7f)
            *line = '?';
    }
}

void client_table_format(const struct client_table *table, const struct client_row *row, char *line,
                         size_t capacity)
{
    static char cell[COLUMN_CELL];
    size_t used = 0;

    *line = '\0';
    for (unsigned i = 0; i < table->count && used < capacity; i++) {
        const struct client_column *column = table->columns[i];
        int blanks;

        if (row)
            column->format(row, cell);
        else
            text_copy(cell, sizeof(cell), column->title);
        blanks = (int)table->width[i] - (int)width_of(cell);
        blanks = i + 1 < table->count && blanks > 0 ? blanks : 0;
        used += (size_t)snprintf(line + used, capacity - used, "%s%s%*s", i ? " " : "", cell,
                                 blanks, "");
    }
    make_fit(line, table->limit);
}

void client_table_print(const struct client_table *table, const struct client_rows *rows, FILE *out)
{
    static char line[LINE_CAPACITY];

    client_table_format(table, NULL, line, sizeof(line));
    fprintf(out, "%s\n", line);
    for (unsigned i = 0; i < rows->count; i++) {
        client_table_format(table, &rows->row[i], line, sizeof(line));
        fprintf(out, "%s\n", line);
    }
}
