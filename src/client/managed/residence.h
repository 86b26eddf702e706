/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where each page of a managed allocation is, and how page faults of the program and work on the
 * device change that. Pure: nothing here moves or locks anything; the caller does what a step says.
 *
 *     PAGE_NEW     neither side has used it: the program's pages will do
 *     PAGE_DEVICE  the device has it, and the program has a page fault there
 *     PAGE_COMING  it is being copied down
 *     PAGE_BOTH    both have the same, and the program may read it
 *     PAGE_HOST    the program may write it; the device does not have it
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define RESIDENCE_PAGE 4096u

enum residence_state { PAGE_NEW, PAGE_DEVICE, PAGE_COMING, PAGE_BOTH, PAGE_HOST };

/* Page faults in sequence are served in larger and larger chunks. Several threads may go through
 * the pages at the same time, each through its own part. */
#define RESIDENCE_WALKS 16u

struct residence_growth {
    struct {
        uint32_t next, size; /* pages */
    } walks[RESIDENCE_WALKS];
    uint32_t latest; /* the walk that has begun last */
};

struct residence {
    unsigned char *pages; /* enum residence_state */
    uint32_t count;
    uint32_t low, high; /* pages that are not the device's or new lie between */
    bool has_new;
    struct residence_growth fetched, written;
};

struct residence_run {
    uint32_t first, count;
};

enum residence_step_kind {
    STEP_CREATE, /* show the pages, writable */
    STEP_FETCH,  /* copy the pages down, call residence_arrived(), show them */
    STEP_AWAIT,  /* wait until they have come, call residence_arrived(), show them */
    STEP_ALLOW,  /* the pages are shown; make them writable */
    STEP_SHOW,   /* show the page again as it is: another page fault was faster */
};

struct residence_step {
    enum residence_step_kind kind;
    struct residence_run run;
    bool writable;
};

/* All pages are new. `bytes` > 0. 0 or -ENOMEM. */
int residence_init(struct residence *residence, uint64_t bytes);
void residence_fini(struct residence *residence);

/* Where a page is. */
static inline enum residence_state residence_of(const struct residence *residence, uint32_t page)
{
    return (enum residence_state)residence->pages[page];
}

/* A page fault of the program. */
struct residence_step residence_fault(struct residence *residence, uint32_t page, bool writes);

/* Pages have come down: false when the device has got some of them back meanwhile, and then the run
 * is not to be shown. */
bool residence_arrived(struct residence *residence, struct residence_run run, bool writable);

/* Pages that were to be shown for reading are writable as well. */
void residence_open(struct residence *residence, struct residence_run run);

/* Moves on to the next pages within `run` that are `state`: false when there are none. `at` is
 * {run.first, 0} at first. */
bool residence_next(const struct residence *residence, struct residence_run run,
                    enum residence_state state, struct residence_run *at);

/* The pages in which the program may have something: empty when that is nowhere. */
struct residence_run residence_shown(const struct residence *residence);

/* The device may use these pages from now on: they are hidden, and PAGE_HOST ones have been sent.
 */
void residence_leave(struct residence *residence, struct residence_run run);

/* Pages of the device are on their way down, without a page fault. */
void residence_come(struct residence *residence, struct residence_run run);
