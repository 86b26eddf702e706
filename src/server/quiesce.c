/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Behind each wait stands an event: once that has passed, the wait is over.
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

struct wait {
    struct list link;
    const struct device *device;
    CUevent passed;
};

/* Waits are begun by many at a time, the calls that wait one after the other. */
static pthread_rwlock_t gate = PTHREAD_RWLOCK_INITIALIZER;

/* How many calls look for a moment in which no stream waits. */
static unsigned seekers; /* atomic */

static struct {
    pthread_mutex_t lock;
    struct list going;
} waits = {
    PTHREAD_MUTEX_INITIALIZER,
    {&waits.going, &waits.going},
};

static void wait_destroy(struct wait *wait)
{
    spare_event_keep(wait->device, wait->passed);
    free(wait);
}

static struct wait *wait_create(const struct device *device, CUstream stream)
{
    struct wait *wait = malloc(sizeof(*wait));

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

/* Without memory for it a wait goes unnoticed. */
void quiesce_wait_record(const struct device *device, CUstream stream)
{
    struct wait *wait = wait_create(device, stream);
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&waits.lock);

    if (wait)
        list_append(&waits.going, &wait->link);
}

static void pause_briefly(void)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};

    nanosleep(&pause, NULL);
}

/* Waits that overlap would keep a call out for ever, so every other turn belongs to those who
 * retry_lock: no wait begins in it. In the turns between begins whatever an earlier wait may need
 * to end. */
static bool is_seekers_turn(void)
{
    return __atomic_load_n(&seekers, __ATOMIC_ACQUIRE) && clock_ns() / TURN_NS % 2;
}

void quiesce_wait_begin(void)
{
    while (is_seekers_turn())
        pause_briefly();
    pthread_rwlock_rdlock(&gate);
}

void quiesce_wait_end(void)
{
    pthread_rwlock_unlock(&gate);
}

static bool any_wait_pending(void)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&waits.lock);

    list_for_each_safe(struct wait, wait, &waits.going, link)
    {
        if (driver.cuEventQuery(wait->passed) == CUDA_ERROR_NOT_READY)
            return true;
        list_remove(&wait->link);
        wait_destroy(wait);
    }
    return false;
}

/* With the gate; gives it back where it is not to be kept. */
static bool keep_unless_waits(void)
{
    if (!any_wait_pending())
        return true;
    pthread_rwlock_unlock(&gate);
    return false;
}

bool quiesce_try(void)
{
    return pthread_rwlock_trywrlock(&gate) == 0 && keep_unless_waits();
}

static bool lock_unless_waits(void)
{
    pthread_rwlock_wrlock(&gate);
    return keep_unless_waits();
}

/* Another call that waits for all streams may take its time: only pauses count. */
static bool retry_lock(void)
{
    bool found = false;

    __atomic_add_fetch(&seekers, 1, __ATOMIC_RELEASE);
    for (unsigned pauses = 0; !found && pauses < PAUSES_MAX; pauses++) {
        pause_briefly();
        found = lock_unless_waits();
    }
    __atomic_sub_fetch(&seekers, 1, __ATOMIC_RELEASE);
    return found;
}

CUresult quiesce_begin(const char *what)
{
    if (lock_unless_waits() || retry_lock())
        return CUDA_SUCCESS;
    log_line("%s is refused: it waits for all streams, and one has waited for a value "
             "(cuStreamWaitValue) for too long",
             what);
    return CUDA_ERROR_NOT_READY;
}

void quiesce_end(void)
{
    pthread_rwlock_unlock(&gate);
}
