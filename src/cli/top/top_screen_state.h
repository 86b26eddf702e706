/* SPDX-License-Identifier: Apache-2.0 */
/* The present state of the full screen of `funnel top`. */
#pragma once

#include <sys/types.h>

#include "client_table.h"
#include "top_history.h"
#include "top_screen.h"

#define TOP_LINE_CAPACITY 1024

struct screen {
    struct top_options *options;
    struct top_sample *sample;
    struct top_history history;
    struct client_rows rows;
    struct client_table table;
    unsigned selected, first; /* rows */
    int titles_y;             /* the line of the columns' titles; rows follow */
    pid_t pid;                /* of the selected program, which may move */
    uint32_t id;
    char message[TOP_LINE_CAPACITY];
    bool helps;
};

/* NULL, also of a group. */
const struct command_client *top_selected_client(const struct screen *screen);

/* Selects a row; the nearest where there is no such row. */
void top_select(struct screen *screen, int row);

/* Draws everything. */
void top_show(struct screen *screen);

/* The line at the bottom, in which a question is asked. */
void top_show_question(const char *question);
