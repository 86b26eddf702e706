/* SPDX-License-Identifier: Apache-2.0 */
/* See worker_places.h. */
#include "worker_places.h"

#include <stdlib.h>

#include "pool_size.h"

/* Sessions differ when one has had more turns than another by one part in so many. Each place that
 * changes costs some cache misses. */
#define TOLERATED_PART 50u

bool worker_places_differ(const struct worker_place *places, unsigned count)
{
    uint64_t least = UINT64_MAX, most = 0;

    for (unsigned i = 0; i < count; i++) {
        least = places[i].turns < least ? places[i].turns : least;
        most = places[i].turns > most ? places[i].turns : most;
    }
    return count && most - least > most / TOLERATED_PART;
}

static int compare_turns(const void *a, const void *b)
{
    const struct worker_place *first = a, *second = b;

    return (first->turns > second->turns) - (first->turns < second->turns);
}

static bool is_faster(const struct pool_room *room, const struct pool_room *other)
{
    return room->speed * other->share > other->speed * room->share;
}

/* Of those that have no sessions yet. */
static unsigned fastest_room(const struct pool_room *rooms, unsigned workers, const bool *filled)
{
    unsigned best = workers;

    for (unsigned i = 0; i < workers; i++) {
        if (!filled[i] && (best == workers || is_faster(&rooms[i], &rooms[best])))
            best = i;
    }
    return best;
}

void worker_places_assign(struct worker_place *places, unsigned count,
                          const struct pool_room *rooms, unsigned workers)
{
    bool filled[POOL_WORKERS_MAX] = {false};
    unsigned given = 0;

    qsort(places, count, sizeof(*places), compare_turns);
    for (unsigned i = 0; i < workers; i++) {
        unsigned fastest = fastest_room(rooms, workers, filled);

        filled[fastest] = true;
        for (unsigned j = 0; j < rooms[fastest].share && given < count; j++)
            places[given++].worker = fastest;
    }
}
