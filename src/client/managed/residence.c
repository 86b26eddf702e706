/* SPDX-License-Identifier: Apache-2.0 */
#include "residence.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Pages of one chunk: 64 KiB at first, and 8 MiB at most. */
#define CHUNK_FIRST 16u
#define CHUNK_MOST 2048u

int residence_init(struct residence *residence, uint64_t bytes)
{
    uint64_t count = (bytes + RESIDENCE_PAGE - 1) / RESIDENCE_PAGE;

    *residence = (struct residence){.count = (uint32_t)count, .has_new = true};
    if (count > UINT32_MAX)
        return -ENOMEM;
    residence->pages = calloc(count, 1);
    return residence->pages ? 0 : -ENOMEM;
}

void residence_fini(struct residence *residence)
{
    free(residence->pages);
    residence->pages = NULL;
}

/* ---- pages for one page fault ---- */

/* The walk that goes on at this page, or one that begins there in place of the oldest. */
static uint32_t find_walk(struct residence_growth *growth, uint32_t page)
{
    for (uint32_t i = 0; i < RESIDENCE_WALKS; i++)
        if (growth->walks[i].size && growth->walks[i].next == page)
            return i;
    growth->latest = (growth->latest + 1) % RESIDENCE_WALKS;
    growth->walks[growth->latest].size = 0;
    return growth->latest;
}

static uint32_t next_size(uint32_t size)
{
    if (size == 0)
        return CHUNK_FIRST;
    return size * 2 < CHUNK_MOST ? size * 2 : CHUNK_MOST;
}

/* Pages around one, all in the same state: a chunk begins at a multiple of the smallest size where
 * that is possible. */
static struct residence_run run_around(const struct residence *residence, uint32_t page,
                                       uint32_t size)
{
    unsigned char state = residence->pages[page];
    uint32_t first = page, end = page + 1;

    while (first % CHUNK_FIRST && residence->pages[first - 1] == state)
        first--;
    while (end < residence->count && end - first < size && residence->pages[end] == state)
        end++;
    return (struct residence_run){first, end - first};
}

static struct residence_run chunk_around(const struct residence *residence, uint32_t page,
                                         struct residence_growth *growth)
{
    uint32_t walk = find_walk(growth, page), size = next_size(growth->walks[walk].size);
    struct residence_run run = run_around(residence, page, size);

    growth->walks[walk].size = size;
    growth->walks[walk].next = run.first + run.count;
    return run;
}

/* ---- steps ---- */

static void set_state(struct residence *residence, struct residence_run run,
                      enum residence_state state)
{
    memset(residence->pages + run.first, (int)state, run.count);
}

static void widen(struct residence *residence, struct residence_run run)
{
    bool empty = residence->low == residence->high;

    if (empty || run.first < residence->low)
        residence->low = run.first;
    if (empty || run.first + run.count > residence->high)
        residence->high = run.first + run.count;
}

static struct residence_step take_run(struct residence *residence, enum residence_step_kind kind,
                                      uint32_t page, struct residence_growth *growth,
                                      enum residence_state state, bool writable)
{
    struct residence_run run = chunk_around(residence, page, growth);

    set_state(residence, run, state);
    widen(residence, run);
    return (struct residence_step){kind, run, writable};
}

struct residence_step residence_fault(struct residence *residence, uint32_t page, bool writes)
{
    unsigned char state = residence->pages[page];

    switch (state) {
    case PAGE_NEW:
        return take_run(residence, STEP_CREATE, page, &residence->fetched, PAGE_HOST, true);
    case PAGE_DEVICE:
        return take_run(residence, STEP_FETCH, page, &residence->fetched, PAGE_COMING, writes);
    case PAGE_COMING:
        return (struct residence_step){STEP_AWAIT, run_around(residence, page, CHUNK_MOST), writes};
    case PAGE_BOTH:
        if (writes)
            return take_run(residence, STEP_ALLOW, page, &residence->written, PAGE_HOST, true);
        break;
    }
    return (struct residence_step){STEP_SHOW, {page, 1}, state == PAGE_HOST};
}

bool residence_arrived(struct residence *residence, struct residence_run run, bool writable)
{
    struct residence_run whole = {run.first, 0};

    if (!residence_next(residence, run, PAGE_COMING, &whole) || whole.count != run.count)
        return false;
    set_state(residence, run, writable ? PAGE_HOST : PAGE_BOTH);
    return true;
}

void residence_open(struct residence *residence, struct residence_run run)
{
    set_state(residence, run, PAGE_HOST);
}

bool residence_next(const struct residence *residence, struct residence_run run,
                    enum residence_state state, struct residence_run *at)
{
    const unsigned char *pages = residence->pages;
    uint32_t end = run.first + run.count, first = at->first + at->count, last;

    while (first < end && pages[first] != state)
        first++;
    for (last = first; last < end && pages[last] == state; last++)
        continue;
    *at = (struct residence_run){first, last - first};
    return last > first;
}

struct residence_run residence_shown(const struct residence *residence)
{
    return (struct residence_run){residence->low, residence->high - residence->low};
}

void residence_leave(struct residence *residence, struct residence_run run)
{
    bool all = run.first <= residence->low && run.first + run.count >= residence->high;

    set_state(residence, run, PAGE_DEVICE);
    if (residence->has_new && run.count == residence->count)
        residence->has_new = false;
    if (all)
        residence->low = residence->high = 0;
}

void residence_come(struct residence *residence, struct residence_run run)
{
    set_state(residence, run, PAGE_COMING);
    widen(residence, run);
}
