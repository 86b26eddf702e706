/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An event is recorded before each wait of a stream and one behind it: once the first has
 * completed, the stream waits, and once the second has, the wait is over.
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
#include "quota.h"
#include "spare_events.h"

#define PAUSE_NS (200 * NS_PER_US)
#define PAUSES_A_SECOND 5000u
#define LOOK_PAUSES 500u /* between two looks at how long streams have waited */
#define ROUNDS_MAX 4u    /* of QUOTA_WAIT_SECONDS, until a call is refused */
#define OVERDUE_MAX 16u
#define TURN_NS (20 * NS_PER_MS)

/* A stream that waits for a value. */
struct stream_wait {
    struct list link;
    const struct device *device;
    CUevent reached, passed; /* recorded before it and behind it */
    uint32_t client;
    uint64_t since; /* clock_ns(), when a call first found that the stream has reached it; or 0 */
};

struct quiesce {
    /* Threads that give streams something to wait for are its readers, and a call that waits for
     * all streams is its writer. */
    pthread_rwlock_t lock;
    unsigned seekers; /* atomic: calls that look for a moment in which no stream waits */
    unsigned tickets; /* atomic: those of them that have looked for QUOTA_WAIT_SECONDS */
    pthread_mutex_t waits_lock;
    struct list waits; /* struct stream_wait */

    /* The locks that a call takes, in this order: this one alone, or those of a group. */
    struct quiesce *members[QUIESCE_MEMBERS_MAX];
    unsigned member_count;

    quiesce_overdue *end_client; /* or NULL */
    void *context;
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

void quiesce_set_overdue(struct quiesce *quiesce, quiesce_overdue *end_client, void *context)
{
    quiesce->end_client = end_client;
    quiesce->context = context;
}

void quiesce_wait_drop(struct stream_wait *wait)
{
    if (!wait)
        return;
    if (wait->reached)
        spare_event_keep(wait->device, wait->reached);
    if (wait->passed)
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

struct stream_wait *quiesce_wait_expect(const struct device *device, CUstream stream,
                                        uint32_t client)
{
    struct stream_wait *wait = calloc(1, sizeof(*wait));

    if (!wait)
        return NULL;
    wait->device = device;
    wait->client = client;
    if (spare_event_take(device, &wait->reached) == CUDA_SUCCESS &&
        spare_event_take(device, &wait->passed) == CUDA_SUCCESS &&
        driver.cuEventRecord(wait->reached, stream) == CUDA_SUCCESS)
        return wait;
    quiesce_wait_drop(wait);
    return NULL;
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
            quiesce_wait_drop(wait);
    }
}

void quiesce_wait_record(struct stream_wait *wait, CUstream stream)
{
    if (!wait)
        return;
    if (driver.cuEventRecord(wait->passed, stream) != CUDA_SUCCESS) {
        quiesce_wait_drop(wait);
        return;
    }
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&wait->device->quiesce->waits_lock);

    forget_passed_locked(&wait->device->quiesce->waits);
    list_append(&wait->device->quiesce->waits, &wait->link);
}

static void pause_briefly(void)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};

    nanosleep(&pause, NULL);
}

/* Waits that overlap would keep a call out forever, so every other turn belongs to the seekers: no
 * wait begins in it. In the turns between, a wait may begin that an earlier wait needs to end. A
 * call with a ticket has all turns. Partner of the counters: count_calls(). */
static bool is_seekers_turn(const struct quiesce *quiesce)
{
    if (__atomic_load_n(&quiesce->tickets, __ATOMIC_ACQUIRE))
        return true;
    return __atomic_load_n(&quiesce->seekers, __ATOMIC_ACQUIRE) && clock_ns() / TURN_NS % 2;
}

bool quiesce_wait_begin(struct quiesce *quiesce, const atomic_bool *stop)
{
    while (is_seekers_turn(quiesce)) {
        if (atomic_load(stop))
            return false;
        pause_briefly();
    }
    pthread_rwlock_rdlock(&quiesce->lock);
    return true;
}

bool quiesce_wait_try(struct quiesce *quiesce)
{
    return pthread_rwlock_tryrdlock(&quiesce->lock) == 0;
}

bool quiesce_wait_try_for(struct quiesce *quiesce, uint64_t timeout_ns)
{
    uint64_t deadline = clock_ns() + timeout_ns;
    bool locked;

    while (!(locked = quiesce_wait_try(quiesce)) && clock_ns() < deadline)
        pause_briefly();
    return locked;
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
        quiesce_wait_drop(wait);
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

/* Partner of the counters: is_seekers_turn(). */
static void count_calls(struct quiesce *quiesce, int seekers, int tickets)
{
    for (unsigned i = 0; i < quiesce->member_count; i++) {
        __atomic_add_fetch(&quiesce->members[i]->seekers, (unsigned)seekers, __ATOMIC_RELEASE);
        __atomic_add_fetch(&quiesce->members[i]->tickets, (unsigned)tickets, __ATOMIC_RELEASE);
    }
}

/* ---- waits that last too long ---- */

/* Whether the stream has waited for so long. Work before the wait, however long, does not count. */
static bool is_overdue(struct stream_wait *wait, uint64_t now, uint64_t limit_ns)
{
    if (driver.cuEventQuery(wait->passed) != CUDA_ERROR_NOT_READY)
        return false;
    if (!wait->since && driver.cuEventQuery(wait->reached) != CUDA_ERROR_NOT_READY)
        wait->since = now;
    return wait->since && now - wait->since >= limit_ns;
}

/* The clients whose streams have waited for so long; how many. */
static unsigned find_overdue(struct quiesce *quiesce, uint64_t limit_ns,
                             uint32_t clients[OVERDUE_MAX])
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&quiesce->waits_lock);
    uint64_t now = clock_ns();
    unsigned count = 0;

    list_for_each (struct stream_wait, wait, &quiesce->waits, link)
        if (count < OVERDUE_MAX && is_overdue(wait, now, limit_ns))
            clients[count++] = wait->client;
    return count;
}

/* Ends clients that keep this call away; false when the call waits for its own client alone, which
 * has nobody else to blame. */
static bool end_overdue(struct quiesce *quiesce, uint64_t limit_ns)
{
    uint32_t clients[OVERDUE_MAX];
    bool ended = false;
    unsigned count = find_overdue(quiesce, limit_ns, clients);

    for (unsigned i = 0; i < count; i++)
        ended |= quiesce->end_client && quiesce->end_client(quiesce->context, clients[i]);
    return ended || !count;
}

static bool end_overdue_members(struct quiesce *quiesce, uint64_t limit_ns)
{
    bool goes_on = true;

    for (unsigned i = 0; i < quiesce->member_count; i++)
        goes_on &= end_overdue(quiesce->members[i], limit_ns);
    return goes_on;
}

/* Each wait has the whole limit. From the third round on no wait has begun for as long, so a stream
 * that still waits has had the limit, or had several waits in a row. */
static uint64_t limit_in(uint64_t round)
{
    return round < 2 ? quota(QUOTA_WAIT_SECONDS) * NS_PER_SEC : 0;
}

/* Another call that waits for all streams may take its time, so only pauses count. */
static bool retry_lock(struct quiesce *quiesce)
{
    const uint64_t round = quota(QUOTA_WAIT_SECONDS) * PAUSES_A_SECOND;
    bool locked = false, goes_on = true;
    uint64_t pauses = 0;

    count_calls(quiesce, 1, 0);
    while (!locked && goes_on && pauses++ < ROUNDS_MAX * round) {
        if (pauses == round)
            count_calls(quiesce, 0, 1);
        pause_briefly();
        locked = lock_members(quiesce, lock_of(quiesce));
        if (!locked && pauses % LOOK_PAUSES == 0)
            goes_on = end_overdue_members(quiesce, limit_in(pauses / round));
    }
    count_calls(quiesce, -1, pauses >= round ? -1 : 0);
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
