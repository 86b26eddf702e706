/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spins for a short while before sleeping on a mutex.
 *
 * NVIDIA's driver guards a context with an ordinary mutex and holds it for about a microsecond a
 * launch. The workers of all clients contend for it, and waking a sleeping thread takes several
 * times as long. The driver calls pthread_mutex_lock by name, and the linker prefers the program's
 * symbol to libc's, so the driver calls this function. All other locks of the server use it, too,
 * which does no harm.
 *
 * Sanitizers define the same function, so this file is not part of their builds.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "clock.h"
#include "feature.h"
#include "spin.h"

/* About 5 us. A longer spin gains nothing with enough CPUs. With too few, spinning threads take CPU
 * time from the thread that has the lock. Then only a few threads launch (worker_pool.h). */
#define PAUSES_MAX 100u

/* The most pauses between two checks, because a check takes the cache line from the thread that has
 * the lock.
 */
#define PAUSES_BETWEEN_MAX 8u

typedef int lock_function(pthread_mutex_t *mutex);

static lock_function *libc_lock(void)
{
    static _Atomic(lock_function *) known;
    lock_function *found = atomic_load_explicit(&known, memory_order_relaxed);

    if (!found) {
        found = (lock_function *)dlsym(RTLD_NEXT, "pthread_mutex_lock");
        atomic_store_explicit(&known, found, memory_order_relaxed);
    }
    return found;
}

static bool spinning_pays(void)
{
    return spin_has_several_cpus() && !feature_is_off_once(FEATURE_LOCK_SPIN);
}

/* A check is cheaper than pthread_mutex_trylock(), but only glibc's layout is known. */
static bool seems_free(pthread_mutex_t *mutex)
{
#ifdef __GLIBC__
    return !atomic_load_explicit((const atomic_int *)&mutex->__data.__lock, memory_order_relaxed);
#else
    return true;
#endif
}

static int spin(pthread_mutex_t *mutex)
{
    int result = EBUSY;

    for (unsigned spent = 0, pauses = 1; result == EBUSY && spent < PAUSES_MAX; spent += pauses) {
        for (unsigned i = 0; i < pauses; i++)
            cpu_relax();
        if (seems_free(mutex))
            result = pthread_mutex_trylock(mutex);
        if (pauses < PAUSES_BETWEEN_MAX)
            pauses *= 2;
    }
    return result;
}

__attribute__((visibility("default"))) int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    int result = pthread_mutex_trylock(mutex);

    if (result == EBUSY && spinning_pays())
        result = spin(mutex);
    return result == EBUSY ? libc_lock()(mutex) : result;
}
