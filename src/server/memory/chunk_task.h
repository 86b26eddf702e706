/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A team of threads (chunk_team.h) that writes to a file while the session's thread goes on with
 * commands. It is a small one, since the program needs CPUs, too.
 *
 * Functions are the session thread's.
 */
#pragma once

#include "chunk_team.h"

/* What follows when all chunks are written: 0 or -errno. On the task's thread. */
typedef int chunk_task_ending(void *context);

struct chunk_task {
    pthread_t thread;
    chunk_task_ending *ending; /* NULL = nothing follows */
    void *context;             /* of the ending */
    struct chunk_order order;
    struct chunk_watch watch;
    atomic_bool is_done;
    CUresult result; /* once it is done, as chunk_team_work() returns it */
    int error;
};

/* Begins an order that has a region at least, with the task's ending. The regions and the task stay
 * where they are until the end. 0 or -errno. */
int chunk_task_begin(struct chunk_task *task, const struct chunk_order *order);

/* From any thread, of a task that was begun; never waits. */
bool chunk_task_is_done(const struct chunk_task *task);

/* Once, of a task that was begun. Waits for all of it, or for a chunk of each thread at most. */
void chunk_task_finish(struct chunk_task *task);
void chunk_task_cancel(struct chunk_task *task);
