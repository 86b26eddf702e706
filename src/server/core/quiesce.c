/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An event is recorded behind each wait of a stream: once the event has completed, the wait is
 * over.
 */
#include "quiesce.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "cleanup.h"
#include "clock.h"
#include "list.h"
#include "loader.h"
#include "log.h"
#include "spare_events.h"

#define PAUSE_NS (200 * NS_PER_US)
#define PAUSES_MAX 150000 /* at least half a minute */
#define TURN_NS (20 * NS_PER_MS)

/* A stream that waits for a value. */
struct stream_wait {
    struct list link;
    const struct device *device;
    CUevent passed; /* recorded behind it */
};

struct quiesce {
    /* Threads that give streams something to wait for are its readers, and a call that waits for
     * all streams is its writer. */
    pthread_rwlock_t lock;
    unsigned seekers; /* atomic: calls that look for a moment in which no stream waits */
    pthread_mutex_t waits_lock;
    struct list waits; /* struct stream_wait */
};

struct quiesce *quiesce_create(void)
{
    struct quiesce *quiesce = calloc(1, sizeof(*quiesce));

    if (!quiesce)
        return NULL;
    pthread_rwlock_init(&quiesce->lock, NULL);
    pthread_mutex_init(&quiesce->waits_lock, NULL);
    list_init(&quiesce->waits);
    return quiesce;
}

static void wait_destroy(struct stream_wait *wait)
{
    spare_event_keep(wait->device, wait->passed);
    free(wait);
}

void quiesce_destroy(struct quiesce *quiesce)
{
    if (!quiesce)
        return;
    list_for_each_safe (struct stream_wait, wait, &quiesce->waits, link)
        free(wait);
    free(quiesce);
}

static struct stream_wait *wait_create(const struct device *device, CUstream stream)
{
    struct stream_wait *wait = malloc(sizeof(*wait));

    if (!wait || spare_event_take(device, &wait->passed) != CUDA_SUCCESS) {
        free(wait);
        return NULL;
    }
    wait->device = device;
    if (driver.cuEventRecord(wait->passed, stream) != CUDA_SUCCESS) {
        wait_destroy(wait);
        return NULL;
    }
    return wait;
}

void quiesce_wait_record(const struct device *device, CUstream stream)
{
    struct stream_wait *wait = wait_create(device, stream);
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&device->quiesce->waits_lock);

    if (wait)
        list_append(&device->quiesce->waits, &wait->link);
}

static void pause_briefly(void)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};

    nanosleep(&pause, NULL);
}

/* Waits that overlap would keep a call out forever, so every other turn belongs to the seekers: no
 * wait begins in it. In the turns between, a wait may begin that an earlier wait needs to end. */
static bool is_seekers_turn(const struct quiesce *quiesce)
{
    return __atomic_load_n(&quiesce->seekers, __ATOMIC_ACQUIRE) && clock_ns() / TURN_NS % 2;
}

void quiesce_wait_begin(struct quiesce *quiesce)
{
    while (is_seekers_turn(quiesce))
        pause_briefly();
    pthread_rwlock_rdlock(&quiesce->lock);
}

void quiesce_wait_end(struct quiesce *quiesce)
{
    pthread_rwlock_unlock(&quiesce->lock);
}

static bool any_wait_pending(struct quiesce *quiesce)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&quiesce->waits_lock);

    list_for_each_safe (struct stream_wait, wait, &quiesce->waits, link) {
        if (driver.cuEventQuery(wait->passed) == CUDA_ERROR_NOT_READY)
            return true;
        list_remove(&wait->link);
        wait_destroy(wait);
    }
    return false;
}

/* The caller holds the lock. It is released again where a stream waits. */
static bool keep_unless_waits(struct quiesce *quiesce)
{
    if (!any_wait_pending(quiesce))
        return true;
    pthread_rwlock_unlock(&quiesce->lock);
    return false;
}

bool quiesce_try(struct quiesce *quiesce)
{
    return pthread_rwlock_trywrlock(&quiesce->lock) == 0 && keep_unless_waits(quiesce);
}

static bool lock_unless_waits(struct quiesce *quiesce)
{
    pthread_rwlock_wrlock(&quiesce->lock);
    return keep_unless_waits(quiesce);
}

/* Another call that waits for all streams may take its time, so only pauses count. Partner of the
 * counter: is_seekers_turn(). */
static bool retry_lock(struct quiesce *quiesce)
{
    bool locked = false;

    __atomic_add_fetch(&quiesce->seekers, 1, __ATOMIC_RELEASE);
    for (unsigned pauses = 0; !locked && pauses < PAUSES_MAX; pauses++) {
        pause_briefly();
        locked = lock_unless_waits(quiesce);
    }
    __atomic_sub_fetch(&quiesce->seekers, 1, __ATOMIC_RELEASE);
    return locked;
}

CUresult quiesce_begin(struct quiesce *quiesce, const char *what)
{
    if (lock_unless_waits(quiesce) || retry_lock(quiesce))
        return CUDA_SUCCESS;
    log_line("%s is refused: it waits for all streams, and one has waited for a value "
             "(cuStreamWaitValue) for too long",
             what);
    return CUDA_ERROR_NOT_READY;
}

void quiesce_end(struct quiesce *quiesce)
{
    pthread_rwlock_unlock(&quiesce->lock);
}
