/* SPDX-License-Identifier: Apache-2.0 */
/* A queue. A library that cannot be unloaded now goes back to its head. */
#include "retired.h"

#include "cleanup.h"
#include "log.h"
#include "quiesce.h"

void retired_init(struct retired *retired, struct quiesce *quiesce)
{
    *retired = (struct retired){.quiesce = quiesce};
    pthread_mutex_init(&retired->lock, NULL);
    list_init(&retired->libraries);
}

void retired_fini(struct retired *retired)
{
    list_for_each_safe (struct library, library, &retired->libraries, link) {
        list_remove(&library->link);
        library_destroy(library);
    }
    retired->count = 0;
    retired->bytes = 0;
}

static void count_locked(struct retired *retired, const struct library *library, int sign)
{
    retired->count += (unsigned)sign;
    retired->bytes += (uint64_t)sign * library->bytes;
}

static void append_library(struct retired *retired, struct library *library)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&retired->lock);

    list_append(&retired->libraries, &library->link);
    count_locked(retired, library, 1);
}

static bool is_too_much_locked(const struct retired *retired)
{
    return retired->count > RETIRED_MAX || retired->bytes > RETIRED_BYTES_MAX;
}

bool retired_exist(struct retired *retired)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&retired->lock);

    return retired->count > 0;
}

bool retired_is_crowded(struct retired *retired)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&retired->lock);

    return retired->count > RETIRED_MAX / RETIRED_CROWDED ||
           retired->bytes > RETIRED_BYTES_MAX / RETIRED_CROWDED;
}

/* The oldest library, or NULL. With `only_surplus` there is one only beyond the limits. */
static struct library *pop(struct retired *retired, bool only_surplus)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&retired->lock);

    if (list_empty(&retired->libraries) || (only_surplus && !is_too_much_locked(retired)))
        return NULL;
    struct library *oldest = list_first(&retired->libraries, struct library, link);
    list_remove(&oldest->link);
    count_locked(retired, oldest, -1);
    return oldest;
}

static void push_back(struct retired *retired, struct library *library)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&retired->lock);

    list_insert(&retired->libraries, &library->link);
    count_locked(retired, library, 1);
}

/* The caller has called quiesce_begin(); this calls quiesce_end(). */
static void unload_library(struct retired *retired, struct library *library)
{
    log_debug("Module of %llu bytes is unloaded", (unsigned long long)library->bytes);
    library_destroy(library);
    quiesce_end(retired->quiesce);
}

/* Returns how many. */
static unsigned unload_now(struct retired *retired, bool only_surplus)
{
    struct library *oldest;
    unsigned count = 0;

    for (; (oldest = pop(retired, only_surplus)); count++) {
        if (quiesce_begin(retired->quiesce, "cuLibraryUnload") != CUDA_SUCCESS) {
            push_back(retired, oldest);
            break;
        }
        unload_library(retired, oldest);
    }
    return count;
}

void retired_add(struct retired *retired, struct library *library, uint64_t bytes)
{
    if (!library || !library->driver) {
        library_destroy(library);
        return;
    }
    library->bytes = bytes;
    append_library(retired, library);
    unload_now(retired, true);
}

bool retired_give_way(struct retired *retired)
{
    return unload_now(retired, false) > 0;
}

bool retired_unload(struct retired *retired)
{
    struct library *oldest = pop(retired, false);

    if (!oldest)
        return false;
    if (!quiesce_try(retired->quiesce)) {
        push_back(retired, oldest);
        return false;
    }
    unload_library(retired, oldest);
    return true;
}
