/* SPDX-License-Identifier: Apache-2.0 */
/* The table of registered memory, for the calls that change it and for the time of a fork. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "heap.h"
#include "page_map.h"
#include "ranges.h"

/* Areas that one registered range may consist of. */
#define REGISTRATION_AREAS_MAX 64u

struct registration {
    uint64_t start, size; /* whole pages of the program */
    uint64_t window;      /* where the granule is */
    int fd;
    bool of_file;         /* the pages are those of a file that others share, and stay in place */
    uint64_t file_offset; /* of the first of them */
    bool live;            /* not while it is being made or ended */
    struct allocation allocation; /* `address` is not set */
    char *saved;                  /* around a fork: the first bytes, then the last ones */
};

struct registration_table {
    pthread_mutex_t lock;
    struct ranges by_host, by_window; /* struct registration */
    _Atomic unsigned live;            /* atomic: how many are found */
};

extern struct registration_table registrations;

/* The next registration above `last` by the program's addresses, or the first one for NULL; NULL at
 * the end. With the lock. */
struct registration *registration_next_locked(const struct registration *last);

/* Where the granule's pages still are: the program may have unmapped them, and there may be
 * something else now. `areas` has space for REGISTRATION_AREAS_MAX. False when that cannot be found
 * out. */
bool registration_find_pages(const struct registration *registration, struct page_area *areas,
                             unsigned *ret_count);
