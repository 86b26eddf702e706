/* SPDX-License-Identifier: Apache-2.0 */
/* See lines.h. */
#include "lines.h"

#include <stdlib.h>
#include <string.h>

void lines_add(void *context, const char *text)
{
    struct lines *lines = context;
    char **grown = reallocarray(lines->line, lines->count + 1, sizeof(*grown));

    if (grown)
        lines->line = grown;
    if (!grown || !(grown[lines->count] = strdup(text)))
        lines->incomplete = true;
    else
        lines->count++;
}

void lines_fini(struct lines *lines)
{
    for (unsigned i = 0; i < lines->count; i++)
        free(lines->line[i]);
    free(lines->line);
}
