/* SPDX-License-Identifier: Apache-2.0 */
/* `funnel top` on a terminal. */
#pragma once

#include "client_columns.h"
#include "top_sample.h"

struct top_options {
    double interval; /* seconds */
    const struct client_column *columns[COLUMNS_MAX];
    unsigned column_count;
    struct client_choice choice;
    char filter[256]; /* what choice.filter points to */
};

/* Whether this build has it, and standard output is a terminal. */
bool top_screen_is_there(void);

/* Until the user ends it: the exit status. */
int top_screen_run(struct top_options *options, struct top_sample *sample);
