/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals that wait while their thread holds a lock. A signal handler of the program may access
 * managed memory whose pages are on the device. The thread then sleeps until another thread of the
 * library has served its page fault. That one needs locks, so no handler may run in a thread that
 * holds one of them. Programs without such memory pay one load.
 *
 * Signals of the thread's own faults (SIGSEGV and the like) never wait.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

extern __attribute__((visibility("hidden"))) _Atomic bool signals_are_deferred;

/* From now on, in all threads. A thread that holds a lock already does not defer its signals before
 * it takes the next one. */
void signals_begin_to_defer(void);

void signals_defer_slowly(void);
void signals_restore_slowly(void);

/* Around what holds a lock; calls nest. Partner: signals_begin_to_defer(). */
static inline void signals_defer(void)
{
    if (__builtin_expect(atomic_load_explicit(&signals_are_deferred, memory_order_relaxed), 0))
        signals_defer_slowly();
}

static inline void signals_restore(void)
{
    if (__builtin_expect(atomic_load_explicit(&signals_are_deferred, memory_order_relaxed), 0))
        signals_restore_slowly();
}

/* For a wait of unknown length: delivers those that no handler is called for, which end or stop the
 * program. */
void signals_admit_without_handler(void);

/* In a child of fork, in which the locks are free. */
void signals_after_fork_in_child(void);

/* As pthread_mutex_lock(), mutex_hold() and _cleanup_mutex_ of cleanup.h. */
static inline void deferring_mutex_lock(pthread_mutex_t *mutex)
{
    signals_defer();
    pthread_mutex_lock(mutex);
}

static inline void deferring_mutex_unlock(pthread_mutex_t *mutex)
{
    pthread_mutex_unlock(mutex);
    signals_restore();
}

static inline pthread_mutex_t *deferring_mutex_hold(pthread_mutex_t *mutex)
{
    deferring_mutex_lock(mutex);
    return mutex;
}

static inline void cleanup_deferring_mutex(pthread_mutex_t **mutex)
{
    deferring_mutex_unlock(*mutex);
}

#define _cleanup_deferring_mutex_ __attribute__((cleanup(cleanup_deferring_mutex), unused))
