/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Isolation: which programs of a server share their fate. A fault ends a server process, so
 * programs in different ones do not pay for each other's faults (docs/design/lanes.md). Of what
 * operators and the program itself ask for the larger number comes first.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum isolation {
    ISOLATION_UNSET = 0,
    ISOLATION_NONE = 1,
    ISOLATION_CLASS = 2,   /* the critical programs, the normal ones */
    ISOLATION_USER = 3,    /* those of a user, in a server for several */
    ISOLATION_GROUP = 4,   /* those of a group */
    ISOLATION_NEW = 5,     /* an executable that has not yet ended without a fault */
    ISOLATION_PROGRAM = 6, /* every executable */
};

/* What an isolation has to be, for messages. */
#define ISOLATION_EXPECTED "none, class, user, group, new or program"

/* False when `text` names no isolation. */
bool isolation_parse(const char *text, uint32_t *ret_isolation);

/* The name of a known one; "none" for every other number. */
const char *isolation_name(uint32_t isolation);
