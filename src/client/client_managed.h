/* SPDX-License-Identifier: Apache-2.0 */
/*
 * __managed__ variables. The code on the GPU reaches such a variable where the driver has put it,
 * in memory of the server that no other process can map. So the program has pages of its own at
 * the same address, and both are brought together where CUDA lets them meet: what the host has
 * changed goes up before work that may see it, and what kernels have changed comes down where the
 * program waits for them. A program without such variables pays one load in each place.
 */
#ifndef FUNNEL_CLIENT_MANAGED_H
#define FUNNEL_CLIENT_MANAGED_H

#include "client_module.h"
#include "client_stream.h"

extern uint32_t managed_in_use; /* atomic: variables that are kept alike; see managed_any() */

/* Called once while attaching. */
void managed_init(void);

static inline bool managed_any(void)
{
    return __builtin_expect(__atomic_load_n(&managed_in_use, __ATOMIC_ACQUIRE) != 0, 0);
}

/* ---- managed_variable.c: which there are ---- */

/* A variable of a module at an address of the server's: the program reaches it from now on. */
CUresult managed_enter(struct module *module, uint64_t address, uint64_t size);

/* The module goes, and its variables with it. */
void managed_leave(struct module *module);

/* The module's context ends. The program still has the addresses of its variables, which stay what
 * they are until the module has a context again. */
void managed_rest(struct module *module);
CUresult managed_wake(struct module *module);

/* While it rests they go on as those of another module of the library. */
void managed_move(struct module *module, struct module *other);

/* Slow; see the next. */
bool managed_find_variable(uint64_t address, struct allocation *ret_allocation);

/* The variable that contains an address. */
static inline bool managed_find(uint64_t address, struct allocation *ret_allocation)
{
    return managed_any() && managed_find_variable(address, ret_allocation);
}

/* Whether it is in a variable: then the program could look at what a copy or memset leaves there.
 */
bool managed_holds(uint64_t address);

/* ---- managed_copy.c: keeping them alike ---- */

/* Slow; see managed_push(), managed_work() and managed_pull(). */
void managed_push_locked(struct stream *stream);
void managed_count_work(void);
void managed_pull_all(void);

/* With the channel lock, before work is put on a stream: it will find what the host has written. */
static inline void managed_push(struct stream *stream)
{
    if (managed_any())
        managed_push_locked(stream);
}

/* Something was put on a stream that may write to variables. */
static inline void managed_work(void)
{
    if (managed_any())
        managed_count_work();
}

/* A thread has waited for work: the host finds what that has written. */
static inline void managed_pull(void)
{
    if (managed_any())
        managed_pull_all();
}

#endif
