/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking on for a moment before sleeping on a mutex.
 *
 * NVIDIA's driver guards a context with an ordinary mutex and holds it for about a microsecond a
 * launch. The workers of all clients meet there, and whoever sleeps pays several times that for
 * being woken. The driver asks libc for pthread_mutex_lock by its name, and what a program defines
 * itself comes before libc: so it is this one that the driver finds. All else in the server that
 * locks gets it as well, which does no harm.
 *
 * Sanitizers stand in this very place: this file is not part of their builds.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

#include "clock.h"
#include "spin.h"
#include "switch.h"

/* About 5 us. Longer brings nothing where there are CPUs enough, and where there are not, those who
 * look on take them from the one who holds the lock. */
#define PAUSES_MAX 100u

/* Between two looks at it: looking takes the line of memory from the one who is to unlock. */
#define PAUSES_BETWEEN_MAX 8u

typedef int lock_function(pthread_mutex_t *mutex);

static lock_function *libc_lock(void)
{
    static lock_function *known;
    lock_function *found = __atomic_load_n(&known, __ATOMIC_RELAXED);

    if (!found) {
        found = (lock_function *)dlsym(RTLD_NEXT, "pthread_mutex_lock");
        __atomic_store_n(&known, found, __ATOMIC_RELAXED);
    }
    return found;
}

static bool spinning_pays(void)
{
    static int off;

    return spin_is_cheap() && !switch_is_on_once(&off, "FUNNEL_NO_LOCK_SPIN");
}

/* To try costs more than to look, but only glibc tells where to look. */
static bool seems_free(pthread_mutex_t *mutex)
{
#ifdef __GLIBC__
    return !__atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED);
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
