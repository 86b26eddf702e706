/* SPDX-License-Identifier: Apache-2.0 */
/* Both sides are mostly files that this process has not read yet. So most of the time goes into
 * page faults, which several threads share as well. */
#include "same_bytes.h"

#include <stdatomic.h>
#include <string.h>

#include "copy_team.h"

#define CHUNK ((size_t)256 << 10)

/* Waking helpers pays for data that takes one thread a quarter of a millisecond. */
#define SHARED_FROM ((size_t)1 << 20)

struct comparison {
    const char *a, *b;
    size_t size;
    _Atomic size_t next; /* the first byte that no thread has taken; atomic */
    atomic_bool differ;  /* atomic */
};

static bool chunk_differs(const struct comparison *all, size_t at)
{
    size_t left = all->size - at;

    return memcmp(all->a + at, all->b + at, left < CHUNK ? left : CHUNK) != 0;
}

/* Partner: the same in other threads, and same_bytes(), which reads when all are done. */
static void compare_chunks(void *context)
{
    struct comparison *all = context;
    size_t at;

    while (!atomic_load_explicit(&all->differ, memory_order_relaxed) &&
           (at = atomic_fetch_add_explicit(&all->next, CHUNK, memory_order_relaxed)) < all->size) {
        if (chunk_differs(all, at))
            atomic_store_explicit(&all->differ, true, memory_order_relaxed);
    }
}

bool same_bytes(const void *a, const void *b, size_t size)
{
    struct comparison all = {.a = a, .b = b, .size = size};

    copy_team_run(size >= SHARED_FROM ? copy_team_size() : 0, compare_chunks, &all, NULL);
    return !atomic_load_explicit(&all.differ, memory_order_relaxed);
}
