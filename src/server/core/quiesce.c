/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An event is recorded behind each wait of a stream: once the event has completed, the wait is
 * over.
 */
#include "quiesce.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "activity.h"
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

    /* The locks that a call takes, in this order: this one alone, or those of a group. */
    struct quiesce *members[QUIESCE_MEMBERS_MAX];
    unsigned member_count;
};

struct quiesce *quiesce_create(void)
{
    struct quiesce *quiesce = calloc(1, sizeof(*quiesce));

    if (!quiesce)
        return NULL;
    pthread_rwlock_init(&quiesce->lock, NULL);
    pthread_mutex_init(&quiesce->waits_lock, NULL);
    list_init(&quiesce->waits);
    quiesce->members[0] = quiesce;
    quiesce->member_count = 1;
    return quiesce;
}

struct quiesce *quiesce_create_group(struct quiesce *const *members, unsigned count)
{
    struct quiesce *group = count <= QUIESCE_MEMBERS_MAX ? quiesce_create() : NULL;

    if (!group)
        return NULL;
    for (unsigned i = 0; i < count; i++)
        group->members[i] = members[i];
    group->member_count = count;
    return group;
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

/* Looks at two waits and puts those that go on behind the others, so that a wait which goes on does
 * not keep all later ones in memory. */
static void forget_passed_locked(struct list *waits)
{
    for (unsigned looks = 2; looks && !list_empty(waits); looks--) {
        struct stream_wait *wait = list_first(waits, struct stream_wait, link);

        list_remove(&wait->link);
        if (driver.cuEventQuery(wait->passed) == CUDA_ERROR_NOT_READY)
            list_append(waits, &wait->link);
        else
            wait_destroy(wait);
    }
}

void quiesce_wait_record(const struct device *device, CUstream stream)
{
    struct stream_wait *wait = wait_create(device, stream);
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&device->quiesce->waits_lock);

    forget_passed_locked(&device->quiesce->waits);
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

bool quiesce_wait_try(struct quiesce *quiesce)
{
    return pthread_rwlock_tryrdlock(&quiesce->lock) == 0;
}

void quiesce_wait_end(struct quiesce *quiesce)
{
    pthread_rwlock_unlock(&quiesce->lock);
}

bool quiesce_has_waits(struct quiesce *quiesce)
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

static void unlock_members(struct quiesce *quiesce, unsigned count)
{
    while (count)
        pthread_rwlock_unlock(&quiesce->members[--count]->lock);
}

/* Locks the members with `lock`: none of them where one cannot be locked, or where a stream
 * waits. */
static bool lock_members(struct quiesce *quiesce, int (*lock)(pthread_rwlock_t *lock))
{
    for (unsigned i = 0; i < quiesce->member_count; i++) {
        bool locked = lock(&quiesce->members[i]->lock) == 0;

        if (locked && !quiesce_has_waits(quiesce->members[i]))
            continue;
        unlock_members(quiesce, locked ? i + 1 : i);
        return false;
    }
    return true;
}

/* No member of a group is kept locked while another one is waited for. */
static int (*lock_of(const struct quiesce *quiesce))(pthread_rwlock_t *lock)
{
    return quiesce->member_count == 1 ? pthread_rwlock_wrlock : pthread_rwlock_trywrlock;
}

bool quiesce_try(struct quiesce *quiesce)
{
    return lock_members(quiesce, pthread_rwlock_trywrlock);
}

static void count_seeker(struct quiesce *quiesce, int change)
{
    for (unsigned i = 0; i < quiesce->member_count; i++)
        __atomic_add_fetch(&quiesce->members[i]->seekers, (unsigned)change, __ATOMIC_RELEASE);
}

/* Another call that waits for all streams may take its time, so only pauses count. Partner of the
 * counter: is_seekers_turn(). */
static bool retry_lock(struct quiesce *quiesce)
{
    bool locked = false;

    count_seeker(quiesce, 1);
    for (unsigned pauses = 0; !locked && pauses < PAUSES_MAX; pauses++) {
        pause_briefly();
        locked = lock_members(quiesce, lock_of(quiesce));
    }
    count_seeker(quiesce, -1);
    return locked;
}

CUresult quiesce_begin(struct quiesce *quiesce, const char *what)
{
    if (lock_members(quiesce, lock_of(quiesce)) || retry_lock(quiesce)) {
        activity_set_call(what);
        return CUDA_SUCCESS;
    }
    log_line("%s is refused: it waits for all streams, and one has waited for a value "
             "(cuStreamWaitValue) for too long",
             what);
    return CUDA_ERROR_NOT_READY;
}

void quiesce_end(struct quiesce *quiesce)
{
    activity_set_call(NULL);
    unlock_members(quiesce, quiesce->member_count);
}
