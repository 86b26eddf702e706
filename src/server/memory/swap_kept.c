/* SPDX-License-Identifier: Apache-2.0 */
/* See swap_kept.h. */
#include "swap_kept.h"

#include "cleanup.h"
#include "memory_state.h"
#include "swap.h"
#include "swap_copy.h"

static struct kept_copies *kept_of(const struct session *session)
{
    return &session->server->memory->kept_copies;
}

void kept_copies_init(struct kept_copies *kept)
{
    pthread_mutex_init(&kept->lock, NULL);
    list_init(&kept->copies);
}

static void count_segments(struct swap_pool *pool, const struct swap_copy *copy, bool kept)
{
    for (unsigned i = 0; i < copy->count; i++)
        swap_pool_keep(pool, swap_segment_size(copy, i), kept);
}

void swap_keep(struct session *session, struct granule *granule)
{
    struct kept_copies *kept = kept_of(session);
    struct swap_copy *copy = granule->swapped;

    if (!copy->hashes) {
        swap_forget(session, granule);
        return;
    }
    session->memory->device[granule->part].swapped -= granule->size;
    granule->swapped = NULL;
    granule->kept_copy = copy;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&kept->lock);
    count_segments(swap_pool_of(session), copy, true);
    list_append(&kept->copies, &copy->link);
}

/* Takes the copy out of the list, unless it has been given up. */
static bool take_copy(struct session *session, struct swap_copy *copy)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&kept_of(session)->lock);

    if (!copy->count)
        return false;
    list_remove(&copy->link);
    count_segments(swap_pool_of(session), copy, false);
    return true;
}

void swap_keep_claim(struct session *session, struct granule *granule)
{
    struct swap_copy *copy = granule->kept_copy;

    granule->kept_copy = NULL;
    if (copy && take_copy(session, copy)) {
        granule->swapped = copy;
        session->memory->device[granule->part].swapped += granule->size;
    } else if (copy) {
        swap_copy_end(swap_pool_of(session), copy);
    }
}

void swap_keep_end(struct session *session, struct granule *granule)
{
    struct swap_copy *copy = granule->kept_copy;

    granule->kept_copy = NULL;
    if (!copy)
        return;
    take_copy(session, copy);
    swap_copy_end(swap_pool_of(session), copy);
}

/* False when none is kept. */
static bool give_up_oldest(struct session *session)
{
    struct kept_copies *kept = kept_of(session);
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&kept->lock);

    struct swap_copy *copy = list_first(&kept->copies, struct swap_copy, link);

    if (!copy)
        return false;
    list_remove(&copy->link);
    count_segments(swap_pool_of(session), copy, false);
    swap_copy_empty(swap_pool_of(session), copy);
    return true;
}

CUresult swap_keep_take(struct session *session, const struct device *device, uint64_t size,
                        uint64_t *ret_address)
{
    struct swap_pool *pool = swap_pool_of(session);

    do {
        if (swap_pool_take_made(pool, size, ret_address))
            return CUDA_SUCCESS;
    } while (give_up_oldest(session));
    return swap_pool_take(pool, device, size, ret_address);
}
