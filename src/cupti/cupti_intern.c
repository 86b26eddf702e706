/* SPDX-License-Identifier: Apache-2.0 */
/* See cupti_intern.h. A table of chains: programs have some thousand kernels at most. */
#include "cupti_intern.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"

#define CHAINS 1024u

struct interned {
    struct interned *next;
    char name[];
};

static pthread_mutex_t intern_lock = PTHREAD_MUTEX_INITIALIZER;
static struct interned *chains[CHAINS];

/* FNV-1a. */
static uint32_t hash_name(const char *name)
{
    uint32_t hash = 2166136261u;

    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return hash;
}

const char *cupti_intern(const char *name)
{
    struct interned **chain = &chains[hash_name(name) % CHAINS];
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&intern_lock);
    size_t size = strlen(name) + 1;
    struct interned *made;

    for (const struct interned *one = *chain; one; one = one->next)
        if (!strcmp(one->name, name))
            return one->name;
    made = malloc(sizeof(*made) + size);
    if (!made)
        return "";
    memcpy(made->name, name, size);
    made->next = *chain;
    *chain = made;
    return made->name;
}

void cupti_intern_after_fork(void)
{
    pthread_mutex_init(&intern_lock, NULL);
}
