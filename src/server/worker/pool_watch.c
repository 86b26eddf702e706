/* SPDX-License-Identifier: Apache-2.0 */
/* See pool_watch.h. */
#include "pool_watch.h"

#include "session_life.h"

/* A worker keeps one part in so many above its share of the sessions. */
#define TOLERATED_PART 16u

/* Of the turns of a session one part in so many is forgotten: half of them in 0.44 s. A turn counts
 * for so much, so that something of it can be forgotten. */
#define FORGOTTEN_PART 32u
#define TURNS_SCALE 256u

/* What the worker has done since the watchdog's last round. */
static struct pool_time look_at(struct pool_worker *worker)
{
    struct pool_time now = {atomic_load_explicit(&worker->all_ns, memory_order_relaxed),
                            atomic_load_explicit(&worker->busy_ns, memory_order_relaxed)};
    struct pool_time since = {now.all - worker->seen_time.all, now.busy - worker->seen_time.busy};
    uint64_t turns = atomic_load_explicit(&worker->turns, memory_order_relaxed);
    unsigned load = pool_load_of(worker);

    worker->turns_each = load ? (turns - worker->seen_turns) * TURNS_SCALE / load : 0;
    pool_turns_add(&worker->recent, (struct pool_turns){since.busy, turns - worker->seen_turns});
    worker->seen_time = now;
    worker->seen_turns = turns;
    return since;
}

static struct pool_time look_at_all(struct worker_pool *pool)
{
    struct pool_time sum = {0};

    for (unsigned i = 0; i < pool->count; i++) {
        struct pool_time since = look_at(&pool->workers[i]);

        sum.all += since.all;
        sum.busy += since.busy;
    }
    return sum;
}

/* Of the sessions that workers have. Returns how many these are. */
static unsigned list_places_locked(struct server *server, struct worker_pool *pool)
{
    unsigned count = 0;

    list_for_each (struct session, session, &server->sessions, link) {
        struct session_place *place = &session->life->place;
        unsigned worker = atomic_load_explicit(&place->worker, memory_order_relaxed);

        place->turns -= place->turns / FORGOTTEN_PART;
        if (!worker || count == SERVER_CLIENTS_MAX)
            continue;
        place->turns += pool->workers[worker - 1].turns_each;
        pool->places[count++] = (struct worker_place){session, place->turns, worker - 1};
    }
    return count;
}

/* The worker does it in its next round. Partner: follow_move(). */
static void move_to(struct session *session, unsigned worker)
{
    struct session_place *place = &session->life->place;
    bool is_there = atomic_load_explicit(&place->worker, memory_order_relaxed) == worker;

    atomic_store_explicit(&place->next, is_there ? 0 : worker, memory_order_relaxed);
}

/* Whether a worker has much more than its share. */
static bool set_shares(struct worker_pool *pool, const struct pool_room *rooms)
{
    bool crowded = false;

    for (unsigned i = 0; i < pool->count; i++) {
        unsigned share = rooms[i].share;

        atomic_store_explicit(&pool->workers[i].share, share, memory_order_relaxed);
        crowded |= pool_load_of(&pool->workers[i]) > share + share / TOLERATED_PART;
    }
    return crowded;
}

static void share_out_locked(struct server *server, struct worker_pool *pool, unsigned active)
{
    struct pool_turns recent[POOL_WORKERS_MAX];
    struct pool_room rooms[POOL_WORKERS_MAX] = {0};
    unsigned count = list_places_locked(server, pool);

    for (unsigned i = 0; i < active; i++)
        recent[i] = pool->workers[i].recent;
    pool_share(recent, active, count, rooms);
    bool crowded = set_shares(pool, rooms);
    if (!crowded && !worker_places_differ(pool->places, count))
        return;
    worker_places_assign(pool->places, count, rooms, active);
    for (unsigned i = 0; i < count; i++)
        move_to(pool->places[i].session, pool->workers[pool->places[i].worker].number);
}

void pool_watch_update_locked(struct server *server, struct worker_pool *pool, bool trains)
{
    struct pool_time since = look_at_all(pool);
    unsigned active = pool_size_adapt(
        &pool->size, atomic_load_explicit(&pool->active, memory_order_relaxed), since, trains);

    atomic_store_explicit(&pool->active, active, memory_order_relaxed);
    share_out_locked(server, pool, active);
}
