/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where every subsystem lets managed variables (src/client/managed) take part. Such a variable is
 * there twice, in the program and on the device; both are made alike where CUDA lets them meet. A
 * program without such variables pays one load in each place.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct allocation;
struct stream;

/* Filled once while attaching, and called only while there are managed variables. */
struct managed_hooks {
    void (*push)(struct stream *stream);
    void (*count_work)(void);
    void (*pull)(void);
    bool (*find)(uint64_t address, struct allocation *ret_allocation);
};

extern struct managed_hooks managed_hooks;
extern _Atomic uint32_t managed_in_use; /* atomic: managed variables that are kept alike */

/* Partner: the counting of variables in managed_variable.c. */
static inline bool managed_any(void)
{
    return __builtin_expect(atomic_load_explicit(&managed_in_use, memory_order_acquire) != 0, 0);
}

/* With the channel lock, before work is put on a stream: it will find what the host has written. */
static inline void managed_push(struct stream *stream)
{
    if (managed_any())
        managed_hooks.push(stream);
}

/* Something was put on a stream that may write to variables. */
static inline void managed_work(void)
{
    if (managed_any())
        managed_hooks.count_work();
}

/* A thread has waited for work: the host finds what that has written. Holds no lock meanwhile. */
static inline void managed_pull(void)
{
    if (managed_any())
        managed_hooks.pull();
}

/* The variable that contains an address: false when none does. */
static inline bool managed_find(uint64_t address, struct allocation *ret_allocation)
{
    return managed_any() && managed_hooks.find(address, ret_allocation);
}

/* Whether a variable contains the address: then the program can look at what a copy or memset
 * leaves there. */
static inline bool managed_holds(uint64_t address)
{
    return managed_find(address, NULL);
}
