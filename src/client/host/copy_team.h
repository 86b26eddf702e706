/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Up to two helper threads for large copies. They are made by the first copy that wants them,
 * sleep in between, and are never joined; a child of fork starts again with none.
 */
#pragma once

/* Called once while attaching: forgets the helpers that the parent of a fork had. */
void copy_team_init(void);

/* How many helpers this process may have: 0 with at most two CPUs or FUNNEL_OFF=copy-threads, and
 * with FUNNEL_ALL_COPY_THREADS=1 two on any number of CPUs. */
unsigned copy_team_size(void);

/* How many helpers there are now. */
unsigned copy_team_threads(void);

/* Called around the time in which the owner of a job does nothing but wait for its helpers. */
struct copy_team_wait {
    void (*begin)(void);
    void (*end)(void);
};

/* Calls work(context) here and at the same time in up to `helpers` helpers, and returns when all
 * calls have. Every call must finish the remaining work. While the helpers work for another thread,
 * the caller works alone. `wait` may be NULL. */
void copy_team_run(unsigned helpers, void (*work)(void *context), void *context,
                   const struct copy_team_wait *wait);
