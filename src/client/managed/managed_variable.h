/* SPDX-License-Identifier: Apache-2.0 */
/* Between the list of managed variables and the code that copies them. Where managed memory moves
 * (managed_area.h), the pages of variables do so; else their contents are compared. */
#pragma once

#include "client_memory.h"
#include "client_stream.h"

struct managed_variable {
    struct allocation allocation; /* where it is, in the server and here */
    bool in_use;                  /* its owner does not rest */
    bool entered;                 /* in the table */
    /* Where it is compared. Page-locked, one after the other; NULL while the owner rests. */
    unsigned char *known;   /* the last contents that both sides have seen */
    unsigned char *fetched; /* contents of the server's copy when it was last fetched */
    unsigned char *asked;   /* `known` when `fetched` was asked for; not page-locked */
    struct list link;       /* in the list of its owner */
};

/* The program's own bytes of it. */
static inline unsigned char *managed_here(const struct managed_variable *variable)
{
    return (unsigned char *)(uintptr_t)variable->allocation.address;
}

/* A lock for a moment, and the innermost one. */
void managed_lock(void);
void managed_unlock(void);

/* The variables to compare, by address: the first, and the one behind another; NULL when there is
 * none. */
struct managed_variable *managed_first_locked(void);
struct managed_variable *managed_next_locked(const struct managed_variable *variable);

/* Whether there are any: one load. */
bool managed_variable_any(void);

/* Where variables move: the next bytes of variables in [*at, end), as [*at, *at + *ret_size). False
 * when there are none. Each variable is memory of its own to the driver, which refuses a copy that
 * goes from one into the next. */
bool managed_variables_next(uint64_t *at, uint64_t end, uint64_t *ret_size);

/* Whether not more than one variable has something of [start, end). */
bool managed_variable_is_alone(uint64_t start, uint64_t end);
