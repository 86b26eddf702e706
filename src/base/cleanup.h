/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and locks that a scope gives back on every way out of it.
 *
 *     _cleanup_free_ char *text = strdup(name);
 *     _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&object->lock);
 */
#pragma once

#include <pthread.h>
#include <stdlib.h>

static inline void cleanup_free(void *pointer)
{
    free(*(void **)pointer);
}

#define _cleanup_free_ __attribute__((cleanup(cleanup_free)))

/* Locks `mutex` and returns it, for a variable marked _cleanup_mutex_. */
static inline pthread_mutex_t *mutex_hold(pthread_mutex_t *mutex)
{
    pthread_mutex_lock(mutex);
    return mutex;
}

static inline void cleanup_mutex(pthread_mutex_t **mutex)
{
    pthread_mutex_unlock(*mutex);
}

/* The variable is only there for its end of scope, so no code reads it. */
#define _cleanup_mutex_ __attribute__((cleanup(cleanup_mutex), unused))

/* Gives a pointer away: evaluates to it and leaves NULL behind. */
#define steal_pointer(pointer)                         \
    __extension__({                                    \
        __typeof__(pointer) *steal_from_ = &(pointer); \
        __typeof__(pointer) stolen_ = *steal_from_;    \
        *steal_from_ = NULL;                           \
        stolen_;                                       \
    })
