/* SPDX-License-Identifier: Apache-2.0 */
/* See client_table.h. */
#include "client_table.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "text.h"

#define LINE_CAPACITY 2048
#define LAST_LEAST 24 /* of the last column, where others are left out for it */

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

/* Where a command does not fit, the folder of its program is what is missed least. */
static void drop_folder(char *command, unsigned limit)
{
    size_t indent = strspn(command, " "), word = indent + strcspn(command + indent, " ");
    size_t name = word;

    while (name > indent && command[name - 1] != '/')
        name--;
    if (width_of(command) > limit && name > indent && name < word)
        memmove(command + indent, command + name, strlen(command + name) + 1);
}

/* The columns of the line that are left for the last cell. */
static unsigned width_of_last(const struct client_table *table)
{
    unsigned before = 0;

    for (unsigned i = 0; i + 1 < table->count; i++)
        before += table->width[i] + 1;
    return !table->limit ? UINT_MAX : table->limit > before ? table->limit - before : 0;
}

void client_table_cell(const struct client_table *table, unsigned which,
                       const struct client_row *row, char ret_cell[COLUMN_CELL])
{
    const struct client_column *column = table->columns[which];
    bool last = which + 1 == table->count;
    char text[COLUMN_CELL];
    int blanks;

    if (row)
        column->format(row, text);
    else
        text_copy(text, sizeof(text), column->title);
    if (last)
        drop_folder(text, width_of_last(table));
    blanks = (int)table->width[which] - (int)width_of(text);
    blanks = blanks > 0 && (column->number || !last) ? blanks : 0;
    text_format(ret_cell, COLUMN_CELL, "%*s%s%*s", column->number ? blanks : 0, "", text,
                column->number ? 0 : blanks, "");
    make_fit(ret_cell, last && table->limit ? width_of_last(table) : 0);
}

void client_table_format(const struct client_table *table, const struct client_row *row, char *line,
                         size_t capacity)
{
    char cell[COLUMN_CELL];
    size_t used = 0;

    *line = '\0';
    for (unsigned i = 0; i < table->count && used < capacity; i++) {
        client_table_cell(table, i, row, cell);
        used += (size_t)snprintf(line + used, capacity - used, "%s%s", i ? " " : "", cell);
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
