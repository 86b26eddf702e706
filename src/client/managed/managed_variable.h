/* SPDX-License-Identifier: Apache-2.0 */
/* Between the list of managed variables and the code that copies them. */
#pragma once

#include "client_memory.h"
#include "client_stream.h"

struct managed_variable {
    struct allocation allocation; /* where it is, in the server and here */
    /* Page-locked, one after the other; NULL while the owner rests. */
    unsigned char *known;   /* what both sides have seen last */
    unsigned char *fetched; /* what the server's copy held when it was last fetched */
    unsigned char *asked;   /* what was known when `fetched` was asked for; not page-locked */
    struct list link;       /* in the list of its owner */
};

/* The program's own bytes of it. */
static inline unsigned char *managed_here(const struct managed_variable *variable)
{
    return (unsigned char *)(uintptr_t)variable->allocation.address;
}

/* Held briefly, and the innermost lock. */
void managed_lock(void);
void managed_unlock(void);

/* The variables in use, by address: the first, and the one behind another; NULL when there is
 * none. */
struct managed_variable *managed_first_locked(void);
struct managed_variable *managed_next_locked(const struct managed_variable *variable);

/* Whether there are any: one load. */
bool managed_variable_any(void);
