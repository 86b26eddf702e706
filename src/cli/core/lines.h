/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of text, one after the other. */
#pragma once

#include <stdbool.h>

struct lines {
    char **line;
    unsigned count;
    bool incomplete; /* memory ran out */
};

/* Adds a copy; `lines` is a struct lines. */
void lines_add(void *lines, const char *text);
void lines_fini(struct lines *lines);
