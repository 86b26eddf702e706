/* SPDX-License-Identifier: Apache-2.0 */
/* See cupti_intern.h. A table of chains: programs have some thousand kernels at most. */
#include "cupti_intern.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CHAINS 1024u

struct interned {
    struct interned *next;
    char name[];
};

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
