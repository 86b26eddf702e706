/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A wait that does not hold yet is looked at again by one thread for all of them, which slows down
 * while nothing happens.
 */
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "soft_context.h"
#include "soft_stream.h"
#include "watch_operation.h"

#define EAGER_LOOKS 200
#define LONGEST_PAUSE_NS 500000
#define THOROUGH_EVERY 64

struct wait {
    struct list link;
    struct operation *operation;
    bool (*holds)(struct operation *operation, bool thoroughly);
};

static struct list waits = {&waits, &waits};
static pthread_cond_t waits_appeared = PTHREAD_COND_INITIALIZER;
static bool watching;

static void end_locked(struct wait *wait)
{
    list_remove(&wait->link);
    operation_finish_locked(wait->operation);
    free(wait);
}

/* Ends the waits that hold, or whose context has failed: whether there were any. */
static bool look_locked(bool thoroughly)
{
    struct list done;
    bool any;

    list_init(&done);
    list_for_each_safe (struct wait, wait, &waits, link) {
        if (wait->operation->context->error || wait->holds(wait->operation, thoroughly)) {
            list_remove(&wait->link);
            list_append(&done, &wait->link);
        }
    }
    any = !list_empty(&done);
    list_for_each_safe (struct wait, wait, &done, link)
        end_locked(wait);
    return any;
}

static void pause_between_looks(unsigned looks)
{
    struct timespec pause = {.tv_nsec = 20000ll * (looks - EAGER_LOOKS + 1)};

    if (looks < EAGER_LOOKS) {
        sched_yield();
        return;
    }
    if (pause.tv_nsec > LONGEST_PAUSE_NS)
        pause.tv_nsec = LONGEST_PAUSE_NS;
    nanosleep(&pause, NULL);
}

static void *watch(void *unused)
{
    unsigned looks = 0;

    for (;;) {
        pthread_mutex_lock(&soft_lock);
        while (list_empty(&waits)) {
            pthread_cond_wait(&waits_appeared, &soft_lock);
            looks = 0;
        }
        if (look_locked(looks % THOROUGH_EVERY == THOROUGH_EVERY - 1))
            looks = 0;
        pthread_mutex_unlock(&soft_lock);
        pause_between_looks(looks++);
    }
    return unused;
}

/* Without memory for it, the wait is over at once and the log says so. */
bool watch_until_locked(struct operation *operation,
                        bool (*holds)(struct operation *operation, bool thoroughly))
{
    struct wait *wait;

    if (holds(operation, false))
        return true;
    wait = malloc(sizeof(*wait));
    if (!wait) {
        soft_log("no memory to wait for a word: the stream goes on without");
        return true;
    }
    wait->operation = operation;
    wait->holds = holds;
    list_append(&waits, &wait->link);
    if (!watching)
        watching = soft_thread_start(watch, NULL);
    pthread_cond_signal(&waits_appeared);
    return false;
}
