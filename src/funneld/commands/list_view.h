/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list view is the answer to a command of MPS v3 that shows something: a table made from the
 * reports of a status query. `list` prints its rows, `get` one cell of the first row.
 */
#pragma once

#include "grammar.h"
#include "status_query.h"
#include "table.h"

struct console;
struct list_view;
struct service;

/* The subject of a list. */
struct list_view_type {
    const char *const *titles;
    unsigned listed; /* columns that a list shows; `get` knows all */
    /* Adds the rows of one server that runs; may be NULL. */
    void (*fill)(struct list_view *view, const struct status_report *report);
    /* Adds rows that no running server reports; may be NULL. */
    void (*complete)(struct list_view *view);
};

struct list_view {
    struct console *console;
    struct grammar_values values;
    const struct list_view_type *type;
    struct table table;
};

/* Answers the command: with the field that `values` name, else with all rows. */
void list_view_show(struct console *console, const struct grammar_values *values,
                    const struct list_view_type *type);

/* Whether the command is about the server of that name: no name was given, or this one. */
bool list_view_selects(const struct list_view *view, const char *server);

/* Whether it is about the service, and the console may see that. */
bool list_view_may_show(const struct list_view *view, const struct service *service);

/* For status queries: the servers that the console may see. */
bool list_view_may_query(const struct server_process *server, const void *console);

/* "Ready" and so on. */
const char *server_status_name(unsigned state, bool stopping);
