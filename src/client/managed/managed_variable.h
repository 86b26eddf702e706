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

/* Called once while attaching, before the first call about devices and memory. */
void managed_init(void);

/* Shows another server the memory of managed allocations. With the library closed. */
CUresult managed_replay(void);

/* Around a fork, behind memory_before_fork(). A child gives up the parent's managed memory. */
void managed_before_fork(void);
void managed_after_fork_in_parent(void);
void managed_after_fork_in_child(void);

/* The program reaches a variable at an address of the server's from now on. The variable is in the
 * list of its owner, which is empty at first. CUDA_ERROR_MAP_FAILED when something else of the
 * program is there, CUDA_ERROR_NOT_SUPPORTED when another variable is. Waits for the server. The
 * caller has no lock of the client here or in the functions below. */
CUresult managed_enter(struct list *variables, struct context *context, uint64_t address,
                       uint64_t size);

/* The owner of the list goes, and its variables with it. */
void managed_leave(struct list *variables);

/* The context ends. The program still has the addresses of the variables, which stay what they are
 * until their owner has a context again. */
void managed_rest(struct list *variables);
CUresult managed_wake(struct list *variables, struct context *context);

/* The variables of one list, which rest, continue as those of another list, in its context. */
void managed_move(struct list *variables, struct list *other, struct context *context);
