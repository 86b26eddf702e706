/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A look is a command of MPS v3 that shows something: it makes a table of what a survey finds.
 * `list` shows its rows, `get` one cell of the first one.
 */
#pragma once

#include "grammar.h"
#include "survey.h"
#include "table.h"

struct console;
struct look;
struct service;

/* What there is to look at. */
struct look_subject {
    const char *const *titles;
    unsigned listed; /* columns that a list shows; `get` knows all */
    void (*fill)(struct look *look, const struct survey_part *part); /* may be NULL */
    void (*complete)(struct look *look); /* adds what no running server tells; may be NULL */
};

struct look {
    struct console *console;
    struct grammar_values values;
    const struct look_subject *subject;
    struct table table;
};

/* Answers the command: with the field that `values` name, else with all rows. */
void look_show(struct console *console, const struct grammar_values *values,
               const struct look_subject *subject);

/* No server was named, or this one was. */
bool look_is_meant(const struct look *look, const char *server);

/* The same for a service that the one who asks may see. */
bool look_may_see(const struct look *look, const struct service *service);

/* For surveys: the servers that the console may touch. */
bool look_may_ask(const struct server *server, const void *console);

/* "Ready" and so on. */
const char *look_status(unsigned state, bool stopping);
