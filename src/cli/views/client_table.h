/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of clients as lines of text that fit a terminal. */
#pragma once

#include <stdio.h>

#include "client_columns.h"

struct client_table {
    const struct client_column *columns[COLUMNS_MAX]; /* that are shown */
    unsigned count;
    unsigned width[COLUMNS_MAX];
    unsigned limit; /* of a line; 0 = none */
};

/* Chooses of `columns` those that fit into `limit`, and their widths for these rows. */
void client_table_init(struct client_table *table, const struct client_column *const *columns,
                       unsigned count, const struct client_rows *rows, unsigned limit);

/* A line; of a NULL row the titles. Without the end of line. */
void client_table_format(const struct client_table *table, const struct client_row *row, char *line,
                         size_t capacity);

/* One cell of it, as wide as its column, numbers at the right. */
void client_table_cell(const struct client_table *table, unsigned which,
                       const struct client_row *row, char ret_cell[COLUMN_CELL]);

/* All of them. */
void client_table_print(const struct client_table *table, const struct client_rows *rows,
                        FILE *out);

/* Columns of the terminal on standard output, 0 where it is none. */
unsigned terminal_width(void);
