/* SPDX-License-Identifier: Apache-2.0 */
/* The columns in which clients are shown, by `funnel ps` and `funnel top`. */
#pragma once

#include "client_rows.h"

#define COLUMN_CELL 320
#define COLUMNS_MAX 24

struct client_column {
    const char *name;  /* as options and filters call it */
    const char *title; /* as it is shown */
    const char *about;
    unsigned least; /* columns of a terminal */
    unsigned
        dispensed; /* where the terminal is narrow, columns of higher numbers go first; 0: none */
    bool number;   /* sorted by value, the largest first, and aligned to the right */
    void (*format)(const struct client_row *row, char cell[COLUMN_CELL]);
    double (*value)(const struct client_row *row); /* NULL: sorted by its text */
};

/* Ends with a name of NULL. */
extern const struct client_column client_columns[];

const struct client_column *client_column_find(const char *name, size_t length);

/* "pid,user,command": how many, or -1 with the name that is unknown. */
int client_columns_parse(const char *names, const struct client_column *ret_columns[COLUMNS_MAX],
                         char *ret_unknown, size_t capacity);

/* -1, 0 or 1: numbers from the largest down, texts from A on. */
int client_column_compare(const struct client_column *column, const struct client_row *a,
                          const struct client_row *b);
