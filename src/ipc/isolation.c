/* SPDX-License-Identifier: Apache-2.0 */
/* See isolation.h. */
#include "isolation.h"

#include <string.h>

static const char *const names[] = {
    [ISOLATION_UNSET] = "none",      [ISOLATION_NONE] = "none",   [ISOLATION_CLASS] = "class",
    [ISOLATION_USER] = "user",       [ISOLATION_GROUP] = "group", [ISOLATION_NEW] = "new",
    [ISOLATION_PROGRAM] = "program",
};

bool isolation_parse(const char *text, uint32_t *ret_isolation)
{
    for (uint32_t isolation = ISOLATION_NONE; isolation <= ISOLATION_PROGRAM; isolation++)
        if (!strcmp(text, names[isolation])) {
            *ret_isolation = isolation;
            return true;
        }
    return false;
}

const char *isolation_name(uint32_t isolation)
{
    return names[isolation <= ISOLATION_PROGRAM ? isolation : ISOLATION_NONE];
}
