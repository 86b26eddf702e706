/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that waits can take its launch back as long as nobody has begun it, and does so when it
 * has to wait for long: a launch may itself have to wait, for room in a queue.
 */
#include "launch_combiner.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "loader.h"
#include "spin.h"

#define PLACES 64u
#define CACHE_LINE 128

enum place_state { PLACE_FREE, PLACE_WAITS, PLACE_TAKEN, PLACE_DONE };

struct place {
    _Alignas(CACHE_LINE) _Atomic enum place_state state;
    CUgraphExec exec; /* these three are written before `state` is */
    CUstream stream;
    CUresult result;
};

struct launch_combiner {
    _Alignas(CACHE_LINE) atomic_bool busy; /* a thread launches, for itself and others */
    _Alignas(CACHE_LINE) atomic_uint_fast64_t waiting; /* bit i: look at place i */
    _Alignas(CACHE_LINE) atomic_uint_fast64_t used;    /* bit i: place i has an owner */
    struct place places[PLACES];
};

struct launch_combiner *launch_combiner_create(void)
{
    struct launch_combiner *combiner = aligned_alloc(CACHE_LINE, sizeof(*combiner));

    if (combiner)
        *combiner = (struct launch_combiner){0};
    return combiner;
}

void launch_combiner_destroy(struct launch_combiner *combiner)
{
    free(combiner);
}

int launch_combiner_join(struct launch_combiner *combiner)
{
    uint_fast64_t used = atomic_load(&combiner->used);

    while (~used) {
        int place = __builtin_ctzll(~used);
        if (atomic_compare_exchange_weak(&combiner->used, &used, used | 1ull << place))
            return place;
    }
    return -1;
}

void launch_combiner_leave(struct launch_combiner *combiner, int place)
{
    if (place >= 0)
        atomic_fetch_and(&combiner->used, ~(1ull << place));
}

static bool try_begin(struct launch_combiner *combiner)
{
    return !atomic_load_explicit(&combiner->busy, memory_order_relaxed) &&
           !atomic_exchange_explicit(&combiner->busy, true, memory_order_acquire);
}

static void end(struct launch_combiner *combiner)
{
    atomic_store_explicit(&combiner->busy, false, memory_order_release);
}

/* Partner: of take() in another thread, for the same place. */
static bool change(struct place *place, enum place_state from, enum place_state to)
{
    return atomic_compare_exchange_strong_explicit(&place->state, &from, to, memory_order_acquire,
                                                   memory_order_relaxed);
}

static void launch_for(struct place *place)
{
    if (!change(place, PLACE_WAITS, PLACE_TAKEN))
        return;
    place->result = driver.cuGraphLaunch(place->exec, place->stream);
    atomic_store_explicit(&place->state, PLACE_DONE, memory_order_release);
}

/* Those that come meanwhile are left to one of their own. */
static void launch_for_others(struct launch_combiner *combiner)
{
    uint_fast64_t waiting;

    if (!atomic_load_explicit(&combiner->waiting, memory_order_relaxed))
        return;
    waiting = atomic_exchange_explicit(&combiner->waiting, 0, memory_order_acquire);
    for (; waiting; waiting &= waiting - 1)
        launch_for(&combiner->places[__builtin_ctzll(waiting)]);
}

static CUresult launch_first(struct launch_combiner *combiner, CUgraphExec exec, CUstream stream)
{
    CUresult result = driver.cuGraphLaunch(exec, stream);

    launch_for_others(combiner);
    end(combiner);
    return result;
}

static void ask(struct launch_combiner *combiner, int number, CUgraphExec exec, CUstream stream)
{
    struct place *place = &combiner->places[number];

    place->exec = exec;
    place->stream = stream;
    atomic_store_explicit(&place->state, PLACE_WAITS, memory_order_release);
    atomic_fetch_or_explicit(&combiner->waiting, 1ull << number, memory_order_release);
}

/* Whether the launch has been made; where it takes too long, it was taken back. */
static bool await(struct launch_combiner *combiner, struct place *place)
{
    struct spin spin = spin_begin();

    while (atomic_load_explicit(&place->state, memory_order_acquire) != PLACE_DONE) {
        if (try_begin(combiner)) {
            launch_for_others(combiner);
            end(combiner);
        } else if (!spin_more(&spin)) {
            if (change(place, PLACE_WAITS, PLACE_FREE))
                return false;
            spin = spin_begin();
        }
    }
    return true;
}

CUresult launch_combined(struct launch_combiner *combiner, int place, CUgraphExec exec,
                         CUstream stream)
{
    if (!combiner || place < 0)
        return driver.cuGraphLaunch(exec, stream);
    if (try_begin(combiner))
        return launch_first(combiner, exec, stream);
    ask(combiner, place, exec, stream);
    if (!await(combiner, &combiner->places[place]))
        return driver.cuGraphLaunch(exec, stream);
    return combiner->places[place].result;
}
