/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler: streams are queues of operations, and an operation may also wait for operations of
 * other streams (events, the legacy stream's rules). No stream has a thread: the thread that
 * finishes an operation starts the operations that waited for it.
 *
 * Everything named _locked is called with soft_lock held.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct context;
struct stream;
struct operation;

struct operation_type {
    /*
     * Begins the operation, with the lock held: true when that was all; else operation_finish() is
     * called when it is over. NULL: there is nothing to do. Not called once the context has failed.
     */
    bool (*start_locked)(struct operation *operation);
    /* The work of a worker thread, without the lock, after worker_submit_locked(). */
    void (*work)(struct operation *operation);
    void (*fini)(struct operation *operation);
    /* Also begun when the context has failed, because other threads or processes rely on it. */
    bool always;
};

enum operation_state {
    OPERATION_QUEUED,
    OPERATION_RUNNING,
    OPERATION_FINISHED,
};

struct operation {
    const struct operation_type *type;
    unsigned references;
    enum operation_state state;
    unsigned waits_for;      /* unfinished operations that must come first */
    struct edge *dependents; /* operations that wait for this one */
    struct context *context;
    struct stream *stream;        /* NULL for one that is in no stream */
    struct operation *next;       /* behind this one in its stream */
    struct operation *next_ready; /* among those about to start, or waiting for a worker */
    uint64_t finished_ns;
};

/* `size` bytes, zeroed, of which struct operation is the beginning; the caller holds one reference.
 */
void *operation_create(size_t size, const struct operation_type *type);
void operation_ref_locked(struct operation *operation);
void operation_unref_locked(struct operation *operation);

/* `operation`, which is not enqueued yet, starts only after `on` has finished. */
void operation_depend_locked(struct operation *operation, struct operation *on);

/* Keeps it from starting, whatever it waits for; as often released as held. */
void operation_hold_locked(struct operation *operation);
void operation_release_locked(struct operation *operation);

/* Puts it behind everything in the stream. */
void schedule_enqueue_locked(struct stream *stream, struct operation *operation);
/* Submits an operation without a stream: it starts when its dependencies have finished. */
void schedule_begin_locked(struct context *context, struct operation *operation);

void operation_finish_locked(struct operation *operation);
void operation_finish(struct operation *operation);

/* Release soft_lock and wait until the operation has reached that state. */
void operation_wait_finished_locked(struct operation *operation);
void operation_wait_running_locked(struct operation *operation);

/* Wakes waiting threads after a change other than an operation's end. */
void schedule_changed_locked(void);

/* A detached thread that takes no signals. */
bool soft_thread_start(void *(*function)(void *), void *argument);

/* Hands it to a worker thread. */
void worker_submit_locked(struct operation *operation);
