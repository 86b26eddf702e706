/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of text under titles, printed as a table whose columns fit, or as comma-separated values. */
#pragma once

#include <stdbool.h>

#define TABLE_COLUMNS_MAX 10

struct table {
    const char *const *titles; /* ended by NULL; at most TABLE_COLUMNS_MAX */
    unsigned columns;
    unsigned rows;
    char **cells;    /* row by row */
    bool incomplete; /* memory ran out */
};

enum table_format { TABLE_PLAIN, TABLE_CSV, TABLE_CSV_NOHEADER };

void table_init(struct table *table, const char *const *titles);
void table_fini(struct table *table);

/* Adds a row of as many cells as there are titles; they are copied. */
void table_add(struct table *table, const char *const *cells);

/* The column of that title, or -1. */
int table_column(const struct table *table, const char *title);

/* Prints the first `shown` columns, line by line. */
void table_print(const struct table *table, unsigned shown, enum table_format format,
                 void (*line)(void *context, const char *text), void *context);
