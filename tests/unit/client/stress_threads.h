/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of a stress test: each makes the same rounds, and returns how often something was wrong.
 */
#pragma once

#include <pthread.h>

#include "unit.h"

#define THREADS 4u
#define ROUNDS 10000u

/* Runs THREADS of them, with their numbers from 0, and fails if one returns other than NULL. */
static inline void run_threads(void *(*run)(void *))
{
    pthread_t threads[THREADS];

    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run, (void *)i), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        void *failures;
        pthread_join(threads[i], &failures);
        assert_null(failures);
    }
}
