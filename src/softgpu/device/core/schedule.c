/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams and dependencies. An operation is ready when it is the first of its stream and waits for
 * nothing. A loop starts the ready ones, and none starts another one itself. So a long chain of
 * operations that finish at once does not grow the stack.
 */
#include "schedule.h"

#include <stdlib.h>

#include "clock.h"
#include "soft.h"
#include "soft_context.h"
#include "soft_green.h"
#include "soft_stream.h"

struct edge {
    struct edge *next;
    struct operation *waiting;
};

static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned waiters;
static struct operation *first_ready;
static struct operation **last_ready = &first_ready;

void *operation_create(size_t size, const struct operation_type *type)
{
    struct operation *operation = calloc(1, size);

    if (operation) {
        operation->type = type;
        operation->references = 1;
    }
    return operation;
}

void operation_ref_locked(struct operation *operation)
{
    operation->references++;
}

void operation_unref_locked(struct operation *operation)
{
    if (!operation || --operation->references > 0)
        return;
    if (operation->type->fini)
        operation->type->fini(operation);
    free(operation);
}

void schedule_changed_locked(void)
{
    if (waiters)
        pthread_cond_broadcast(&changed);
}

static void wait_until_locked(struct operation *operation, enum operation_state state)
{
    operation_ref_locked(operation);
    waiters++;
    while (operation->state < state)
        pthread_cond_wait(&changed, &soft_lock);
    waiters--;
    operation_unref_locked(operation);
}

void operation_wait_finished_locked(struct operation *operation)
{
    wait_until_locked(operation, OPERATION_FINISHED);
}

void operation_wait_running_locked(struct operation *operation)
{
    wait_until_locked(operation, OPERATION_RUNNING);
}

void operation_depend_locked(struct operation *operation, struct operation *on)
{
    struct edge *edge;

    if (!on || on->state == OPERATION_FINISHED)
        return;
    edge = malloc(sizeof(*edge));
    if (!edge) {
        /* No memory to remember it: waiting here keeps the order as well. */
        operation_wait_finished_locked(on);
        return;
    }
    edge->waiting = operation;
    edge->next = on->dependents;
    on->dependents = edge;
    operation->waits_for++;
}

static bool is_ready(const struct operation *operation)
{
    return operation->state == OPERATION_QUEUED && operation->waits_for == 0 &&
           (!operation->stream || operation->stream->first == operation);
}

static void make_ready_locked(struct operation *operation)
{
    operation->next_ready = NULL;
    *last_ready = operation;
    last_ready = &operation->next_ready;
}

static void leave_stream_locked(struct operation *operation)
{
    struct stream *stream = operation->stream;

    if (!stream)
        return;
    stream->first = operation->next;
    stream->queued--;
    if (!stream->first)
        stream->last = NULL;
    else if (is_ready(stream->first))
        make_ready_locked(stream->first);
    stream_reap_locked(stream);
}

static void release_dependents_locked(struct operation *operation)
{
    struct edge *edge = operation->dependents;

    operation->dependents = NULL;
    while (edge) {
        struct edge *next = edge->next;

        edge->waiting->waits_for--;
        if (is_ready(edge->waiting))
            make_ready_locked(edge->waiting);
        free(edge);
        edge = next;
    }
}

static void end_locked(struct operation *operation)
{
    operation->state = OPERATION_FINISHED;
    operation->finished_ns = clock_ns();
    leave_stream_locked(operation);
    release_dependents_locked(operation);
    schedule_changed_locked();
    operation_unref_locked(operation);
}

static bool start_locked(struct operation *operation)
{
    const struct operation_type *type = operation->type;

    operation->state = OPERATION_RUNNING;
    if (!type->start_locked || (!type->always && operation->context->error))
        return true;
    return type->start_locked(operation);
}

static void run_ready_locked(void)
{
    while (first_ready) {
        struct operation *operation = first_ready;

        first_ready = operation->next_ready;
        if (!first_ready)
            last_ready = &first_ready;
        if (start_locked(operation))
            end_locked(operation);
    }
}

/* The legacy stream and the streams that block on it wait for each other, in the order of the
 * calls. */
static void order_with_legacy_locked(struct stream *stream, struct operation *operation)
{
    struct stream *legacy = green_legacy_locked(stream);

    if (stream->flags & CU_STREAM_NON_BLOCKING)
        return;
    if (stream != legacy) {
        operation_depend_locked(operation, legacy ? legacy->last : NULL);
        return;
    }
    list_for_each (struct stream, other, &stream->context->streams, in_context) {
        if (other != stream && other->green == stream->green &&
            !(other->flags & CU_STREAM_NON_BLOCKING))
            operation_depend_locked(operation, other->last);
    }
}

void schedule_enqueue_locked(struct stream *stream, struct operation *operation)
{
    operation_ref_locked(operation);
    operation->context = stream->context;
    order_with_legacy_locked(stream, operation);
    operation->stream = stream;
    if (stream->last)
        stream->last->next = operation;
    else
        stream->first = operation;
    stream->last = operation;
    stream->queued++;

    if (is_ready(operation))
        make_ready_locked(operation);
    run_ready_locked();
}

void operation_hold_locked(struct operation *operation)
{
    operation->waits_for++;
}

void operation_release_locked(struct operation *operation)
{
    operation->waits_for--;
    if (is_ready(operation))
        make_ready_locked(operation);
    run_ready_locked();
}

void schedule_begin_locked(struct context *context, struct operation *operation)
{
    operation_ref_locked(operation);
    operation->context = context;
    if (is_ready(operation))
        make_ready_locked(operation);
    run_ready_locked();
}

void operation_finish_locked(struct operation *operation)
{
    end_locked(operation);
    run_ready_locked();
}

void operation_finish(struct operation *operation)
{
    SOFT_LOCKED;
    operation_finish_locked(operation);
}
