/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Behind each wait stands an event: once that has passed, the wait is over.
 */
#include "stall.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "cleanup.h"
#include "clock.h"
#include "list.h"
#include "loader.h"
#include "log.h"
#include "spare_events.h"

#define PATIENCE_NS (10 * NS_PER_SEC)
#define PAUSE_NS (200 * NS_PER_US)

struct wait {
    struct list link;
    const struct device *device;
    CUevent passed;
};

/* Waits are begun by many at a time, the calls that wait one after the other. */
static pthread_rwlock_t gate = PTHREAD_RWLOCK_INITIALIZER;

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
void stall_wait_note(const struct device *device, CUstream stream)
{
    struct wait *wait = wait_create(device, stream);
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&waits.lock);

    if (wait)
        list_append(&waits.going, &wait->link);
}

void stall_wait_begin(void)
{
    pthread_rwlock_rdlock(&gate);
}

void stall_wait_end(void)
{
    pthread_rwlock_unlock(&gate);
}

static bool somebody_waits(void)
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

bool stall_try(void)
{
    if (pthread_rwlock_trywrlock(&gate))
        return false;
    if (!somebody_waits())
        return true;
    pthread_rwlock_unlock(&gate);
    return false;
}

CUresult stall_begin(const char *what)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    uint64_t deadline = clock_ns() + PATIENCE_NS;

    while (clock_ns() < deadline) {
        pthread_rwlock_wrlock(&gate);
        if (!somebody_waits())
            return CUDA_SUCCESS;
        pthread_rwlock_unlock(&gate);
        nanosleep(&pause, NULL);
    }
    log_line("%s is refused: it waits for all streams, and one has waited for a value "
             "(cuStreamWaitValue) for too long",
             what);
    return CUDA_ERROR_NOT_READY;
}

void stall_end(void)
{
    pthread_rwlock_unlock(&gate);
}
