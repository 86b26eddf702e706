/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sequence that comes for the first time takes the place of the one that has not come for the
 * longest time. So sequences that differ each time, as in a program that is never waited for, come
 * and go, and get no batch.
 */
#include "kept_batches.h"

#include <stddef.h>

#include "graph_batch.h"

/* How often a sequence must come before a batch is created for it, which takes as long as a hundred
 * launches. */
#define SEEN_OFTEN 3u

/* A batch stays while its sequence is one of the last so many. */
#define UNUSED_TURNS 1024u

static struct kept_batch *find_place(struct kept_batches *kept, uint64_t key)
{
    for (unsigned i = 0; i < KEPT_BATCHES_MAX; i++) {
        if (kept->kept[i].key == key)
            return &kept->kept[i];
    }
    return NULL;
}

struct graph_batch *kept_batches_find(struct kept_batches *kept, uint64_t key)
{
    struct kept_batch *place = find_place(kept, key);

    if (!place || !place->batch)
        return NULL;
    place->turn = ++kept->turn;
    return place->batch;
}

/* Of those without a batch, or with one. NULL: there is none. */
static struct kept_batch *find_oldest(struct kept_batches *kept, bool has_batch)
{
    struct kept_batch *oldest = NULL;

    for (unsigned i = 0; i < KEPT_BATCHES_MAX; i++) {
        struct kept_batch *place = &kept->kept[i];
        if (!place->batch == !has_batch && (!oldest || place->turn < oldest->turn))
            oldest = place;
    }
    return oldest;
}

struct kept_batch *kept_batches_want(struct kept_batches *kept, uint64_t key)
{
    struct kept_batch *place = find_place(kept, key);

    kept->turn++;
    if (!place) {
        place = find_oldest(kept, false);
        if (!place)
            return NULL;
        *place = (struct kept_batch){.key = key};
    }
    place->turn = kept->turn;
    return ++place->seen >= SEEN_OFTEN ? place : NULL;
}

static void drop(struct kept_batch *place)
{
    graph_batch_destroy(place->batch);
    *place = (struct kept_batch){0};
}

bool kept_batches_drop_unused(struct kept_batches *kept)
{
    struct kept_batch *oldest = find_oldest(kept, true);

    if (!oldest || kept->turn - oldest->turn < UNUSED_TURNS)
        return false;
    drop(oldest);
    return true;
}

unsigned kept_batches_drop(struct kept_batches *kept, const struct module *module)
{
    unsigned dropped = 0;

    for (unsigned i = 0; i < KEPT_BATCHES_MAX; i++) {
        struct kept_batch *place = &kept->kept[i];
        if (!place->batch || (module && !graph_batch_uses(place->batch, module)))
            continue;
        drop(place);
        dropped++;
    }
    return dropped;
}
