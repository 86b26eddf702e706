/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Behind each wait stands an event: once that has passed, the wait is over. Events are kept for the
 * next ones.
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

#define PATIENCE_NS (10 * NS_PER_SEC)
#define PAUSE_NS (200 * NS_PER_US)

struct wait {
    struct list link;
    CUevent passed;
};

/* Waits are begun by many at a time, the calls that wait one after the other. */
static pthread_rwlock_t gate = PTHREAD_RWLOCK_INITIALIZER;

static struct {
    pthread_mutex_t lock;
    struct list going, over;
} waits = {
    PTHREAD_MUTEX_INITIALIZER,
    {&waits.going, &waits.going},
    {&waits.over, &waits.over},
};

static struct wait *take_wait(void)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&waits.lock);

    if (list_empty(&waits.over))
        return NULL;
    struct wait *wait = list_first(&waits.over, struct wait, link);
    list_remove(&wait->link);
    return wait;
}

static struct wait *make_wait(void)
{
    struct wait *wait = calloc(1, sizeof(*wait));

    if (!wait || driver.cuEventCreate(&wait->passed, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS)
        return wait;
    free(wait);
    return NULL;
}

static void keep(struct list *list, struct wait *wait)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&waits.lock);

    list_append(list, &wait->link);
}

/* Without memory for it a wait goes unnoticed. */
void stall_wait_note(CUstream stream)
{
    struct wait *wait = take_wait();

    if (!wait)
        wait = make_wait();
    if (wait)
        keep(driver.cuEventRecord(wait->passed, stream) == CUDA_SUCCESS ? &waits.going
                                                                        : &waits.over,
             wait);
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
        list_append(&waits.over, &wait->link);
    }
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
