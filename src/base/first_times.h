/* SPDX-License-Identifier: Apache-2.0 */
/* The reports that a process has made, so that it makes each once. From any thread. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#define FIRST_TIMES_MAX 256

struct first_times {
    pthread_mutex_t lock;
    unsigned count;
    struct {
        const char *name;
        int number;
    } seen[FIRST_TIMES_MAX];
};

#define FIRST_TIMES_INIT                  \
    {                                     \
        .lock = PTHREAD_MUTEX_INITIALIZER \
    }

/* Whether this name comes with this number for the first time. False also where too many others
 * have come. The name has to outlive `times`. */
bool first_time(struct first_times *times, const char *name, int number);
