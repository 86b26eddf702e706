/* SPDX-License-Identifier: Apache-2.0 */
/* Between the list of managed variables and those who copy them. */
#ifndef FUNNEL_MANAGED_VARIABLE_H
#define FUNNEL_MANAGED_VARIABLE_H

#include "client_managed.h"

struct managed_variable {
    struct allocation allocation; /* where it is, in the server and here */
    /* Page-locked; NULL while the module rests. */
    unsigned char *known; /* what both sides have seen last */
    unsigned char *news;  /* what the server's had a moment ago */
    unsigned char *asked; /* what was known when that was asked for; not page-locked */
    struct list link;     /* module->managed */
};

/* The program's own bytes of it. */
static inline unsigned char *managed_here(const struct managed_variable *variable)
{
    return (unsigned char *)(uintptr_t)variable->allocation.address;
}

/* Short, and the innermost lock. */
void managed_lock(void);
void managed_unlock(void);

/* Those in use, by address: the first, and the one behind another; NULL when there is none. */
struct managed_variable *managed_first_locked(void);
struct managed_variable *managed_next_locked(const struct managed_variable *variable);

/* ---- managed_copy.c ---- */

void managed_copy_init(void);

/* Makes sure that there is a stream to copy on. */
CUresult managed_copy_prepare(struct device *device);

/* Takes over what the server's copy contains: also as the program's, if that has not seen it. */
CUresult managed_fetch(struct managed_variable *variable, bool fresh);

/* Waits for what was sent: nobody reads the page-locked copies any more. */
void managed_copy_settle(void);

#endif
