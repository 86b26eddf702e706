/* SPDX-License-Identifier: Apache-2.0 */
/* A library that cannot be unloaded now returns to the head of the queue. */
#include "unload_queue.h"

#include "cleanup.h"
#include "gate.h"
#include "log.h"

void unload_queue_init(struct unload_queue *queue, struct gate *gate)
{
    *queue = (struct unload_queue){.gate = gate};
    pthread_mutex_init(&queue->lock, NULL);
    list_init(&queue->libraries);
}

void unload_queue_fini(struct unload_queue *queue)
{
    list_for_each_safe (struct library, library, &queue->libraries, link) {
        list_remove(&library->link);
        library_destroy(library);
    }
    queue->count = 0;
    queue->bytes = 0;
}

static void count_locked(struct unload_queue *queue, const struct library *library, int sign)
{
    queue->count += (unsigned)sign;
    queue->bytes += (uint64_t)sign * library->bytes;
}

static void append_library(struct unload_queue *queue, struct library *library)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&queue->lock);

    list_append(&queue->libraries, &library->link);
    count_locked(queue, library, 1);
}

static bool is_too_much_locked(const struct unload_queue *queue)
{
    return queue->count > UNLOAD_QUEUE_MAX || queue->bytes > UNLOAD_QUEUE_BYTES_MAX;
}

bool unload_queue_has_libraries(struct unload_queue *queue)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&queue->lock);

    return queue->count > 0;
}

bool unload_queue_is_over_budget(struct unload_queue *queue)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&queue->lock);

    return queue->count > UNLOAD_QUEUE_MAX / UNLOAD_QUEUE_BUDGET ||
           queue->bytes > UNLOAD_QUEUE_BYTES_MAX / UNLOAD_QUEUE_BUDGET;
}

/* Takes the oldest library, or NULL. With `only_surplus`, NULL below the limits. */
static struct library *pop_library(struct unload_queue *queue, bool only_surplus)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&queue->lock);

    if (list_empty(&queue->libraries) || (only_surplus && !is_too_much_locked(queue)))
        return NULL;
    struct library *oldest = list_first(&queue->libraries, struct library, link);
    list_remove(&oldest->link);
    count_locked(queue, oldest, -1);
    return oldest;
}

static void push_back(struct unload_queue *queue, struct library *library)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&queue->lock);

    list_insert(&queue->libraries, &library->link);
    count_locked(queue, library, 1);
}

/* The caller has called gate_close(); this calls gate_open(). */
static void unload_library(struct unload_queue *queue, struct library *library)
{
    log_debug("Module of %llu bytes is unloaded", (unsigned long long)library->bytes);
    library_destroy(library);
    gate_open(queue->gate);
}

/* Returns the number of unloaded libraries. */
static unsigned unload_now(struct unload_queue *queue, bool only_surplus)
{
    struct library *oldest;
    unsigned count = 0;

    for (; (oldest = pop_library(queue, only_surplus)); count++) {
        if (gate_close(queue->gate, "cuLibraryUnload") != CUDA_SUCCESS) {
            push_back(queue, oldest);
            break;
        }
        unload_library(queue, oldest);
    }
    return count;
}

void unload_queue_add(struct unload_queue *queue, struct library *library, uint64_t bytes)
{
    if (!library || !library->driver) {
        library_destroy(library);
        return;
    }
    library->bytes = bytes;
    append_library(queue, library);
    unload_now(queue, true);
}

bool unload_queue_drain(struct unload_queue *queue)
{
    return unload_now(queue, false) > 0;
}

bool unload_queue_unload(struct unload_queue *queue)
{
    struct library *oldest = pop_library(queue, false);

    if (!oldest)
        return false;
    if (!gate_try_close(queue->gate)) {
        push_back(queue, oldest);
        return false;
    }
    unload_library(queue, oldest);
    return true;
}
