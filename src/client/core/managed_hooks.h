/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where every subsystem lets managed memory (src/client/managed) take part. A managed variable is
 * there twice, in the program and on the device; both are made alike where CUDA lets them meet. The
 * pages of a managed allocation move to the device before work that may use them. A program without
 * managed memory pays one load in each place.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_result.h"

struct allocation;
struct context;
struct stream;

/* Filled once while attaching, and called only while there is managed memory, the last ones apart,
 * from `trim` on. */
struct managed_hooks {
    void (*push)(struct stream *stream);
    void (*count_work)(void);
    void (*announce)(const struct stream *stream, const void *params, size_t size);
    void (*given)(const struct stream *stream, const void *params, size_t size);
    void (*prefetch)(struct stream *stream);
    void (*pull)(void);
    bool (*find)(uint64_t address, struct allocation *ret_allocation);
    void (*use)(uint64_t address, uint64_t size);
    void (*free_all)(const struct context *context);
    void (*trim)(void); /* gives back unused memory of freed allocations; may wait for the server */
    void (*launch)(const void *params, size_t size);
    bool (*free_capacity)(uint32_t device,
                          uint64_t size); /* on the server's device; may wait for it */
    bool (*is_movable)(void);             /* whether allocations move in this process */
};

extern struct managed_hooks managed_hooks;
extern _Atomic uint32_t managed_in_use; /* atomic: variables and allocations */

/* Partner: the counting of variables in managed_variable.c. */
static inline bool managed_any(void)
{
    return __builtin_expect(atomic_load_explicit(&managed_in_use, memory_order_acquire) != 0, 0);
}

/* With the channel lock, before work is put on a stream: it will find the writes of the host. */
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

/* With the channel lock: a kernel with these parameters is about to be put on a stream. Memory that
 * they point to is the kernel's until its end. No parameters where managed memory has come after
 * the launch had begun. */
static inline void managed_given(const struct stream *stream, const void *params, size_t size)
{
    if (managed_any())
        managed_hooks.given(stream, params, size);
}

/* Likewise, for a command that puts several kernels there: for all of them, and managed_given()
 * for all of them afterwards. */
static inline void managed_announce(const struct stream *stream, const void *params, size_t size)
{
    if (managed_any())
        managed_hooks.announce(stream, params, size);
}

/* A thread is about to wait for a stream, or for all of them (NULL). Memory that the program will
 * probably use afterwards may come behind the work. The caller has no lock. */
static inline void managed_prefetch(struct stream *stream)
{
    if (managed_any())
        managed_hooks.prefetch(stream);
}

/* A thread has waited for work: the host finds the writes of that work. The caller has no lock. */
static inline void managed_pull(void)
{
    if (managed_any())
        managed_hooks.pull();
}

/* The variable or allocation that contains an address: false when none does. */
static inline bool managed_find(uint64_t address, struct allocation *ret_allocation)
{
    return managed_any() && managed_hooks.find(address, ret_allocation);
}

/* A copy or a memset on the device is about to use these bytes, however they are attached. The
 * caller has no lock. */
static inline void managed_use(uint64_t address, uint64_t size)
{
    if (managed_any())
        managed_hooks.use(address, size);
}

/* Frees the allocations of a context. */
static inline void managed_free_all(const struct context *context)
{
    if (managed_any())
        managed_hooks.free_all(context);
}

/* A kernel with these parameters is about to be launched. The caller has no lock but that of
 * graphs. */
static inline void managed_launch(const void *params, size_t size)
{
    if (managed_any())
        managed_hooks.launch(params, size);
}

/* Whether managed memory contains the address: then the program can read it after a copy or memset.
 */
static inline bool managed_holds(uint64_t address)
{
    return managed_find(address, NULL);
}
