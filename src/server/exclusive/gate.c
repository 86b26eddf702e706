/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each wait of a stream has a checkpoint before it and one behind it. Once the stream has reached
 * the first, it waits. Once it has reached the second, the wait is over.
 */
#include "gate.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "activity.h"
#include "checkpoint.h"
#include "cleanup.h"
#include "clock.h"
#include "list.h"
#include "loader.h"
#include "log.h"
#include "quota.h"

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
    struct checkpoint reached, passed; /* before the wait and behind it */
    uint32_t client;
    uint64_t since; /* clock_ns(), when a call first found that the stream has reached it; or 0 */
};

struct gate {
    /* Threads that give streams something to wait for are its readers, and a call that waits for
     * all streams is its writer. */
    pthread_rwlock_t lock;
    atomic_uint waiters; /* calls that look for a moment in which no stream waits */
    atomic_uint tickets; /* those of them that have looked for QUOTA_WAIT_SECONDS */
    pthread_mutex_t waits_lock;
    struct list waits; /* struct stream_wait */

    /* The locks that a call takes, in this order: this one alone, or those of a group. */
    struct gate *members[GATE_MEMBERS_MAX];
    unsigned member_count;

    gate_overdue *end_client; /* or NULL */
    void *context;
};

struct gate *gate_create(void)
{
    struct gate *gate = calloc(1, sizeof(*gate));

    if (!gate)
        return NULL;
    pthread_rwlock_init(&gate->lock, NULL);
    pthread_mutex_init(&gate->waits_lock, NULL);
    list_init(&gate->waits);
    gate->members[0] = gate;
    gate->member_count = 1;
    return gate;
}

struct gate *gate_create_group(struct gate *const *members, unsigned count)
{
    struct gate *group = count <= GATE_MEMBERS_MAX ? gate_create() : NULL;

    if (!group)
        return NULL;
    for (unsigned i = 0; i < count; i++)
        group->members[i] = members[i];
    group->member_count = count;
    return group;
}

void gate_set_overdue(struct gate *gate, gate_overdue *end_client, void *context)
{
    gate->end_client = end_client;
    gate->context = context;
}

void gate_wait_drop(struct stream_wait *wait)
{
    if (!wait)
        return;
    checkpoint_drop(&wait->reached);
    checkpoint_drop(&wait->passed);
    free(wait);
}

void gate_destroy(struct gate *gate)
{
    if (!gate)
        return;
    list_for_each_safe (struct stream_wait, wait, &gate->waits, link)
        free(wait);
    free(gate);
}

struct stream_wait *gate_wait_expect(const struct device *device, CUstream stream, uint32_t client)
{
    struct stream_wait *wait = calloc(1, sizeof(*wait));

    if (!wait)
        return NULL;
    wait->device = device;
    wait->client = client;
    if (checkpoint_take(&wait->reached, device) == CUDA_SUCCESS &&
        checkpoint_take(&wait->passed, device) == CUDA_SUCCESS &&
        checkpoint_set(&wait->reached, stream) == CUDA_SUCCESS)
        return wait;
    gate_wait_drop(wait);
    return NULL;
}

/* Looks at two waits and puts those that go on behind the others. So a wait which goes on does not
 * keep all later ones in memory. */
static void forget_passed_locked(struct list *waits)
{
    for (unsigned looks = 2; looks && !list_empty(waits); looks--) {
        struct stream_wait *wait = list_first(waits, struct stream_wait, link);

        list_remove(&wait->link);
        if (checkpoint_is_reached(&wait->passed))
            gate_wait_drop(wait);
        else
            list_append(waits, &wait->link);
    }
}

void gate_wait_record(struct stream_wait *wait, CUstream stream)
{
    if (!wait)
        return;
    if (checkpoint_set(&wait->passed, stream) != CUDA_SUCCESS) {
        gate_wait_drop(wait);
        return;
    }
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&wait->device->gate->waits_lock);

    forget_passed_locked(&wait->device->gate->waits);
    list_append(&wait->device->gate->waits, &wait->link);
}

static void pause_briefly(void)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};

    nanosleep(&pause, NULL);
}

/* Waits that overlap would keep a call out forever, so every other turn belongs to the waiters: no
 * wait begins in it. In the turns between, a wait may begin that an earlier wait needs to end. A
 * call with a ticket has all turns. Partner of the counters: count_calls(). */
static bool is_calls_turn(const struct gate *gate)
{
    if (atomic_load_explicit(&gate->tickets, memory_order_acquire))
        return true;
    return atomic_load_explicit(&gate->waiters, memory_order_acquire) && clock_ns() / TURN_NS % 2;
}

bool gate_enter(struct gate *gate, const atomic_bool *stop)
{
    while (is_calls_turn(gate)) {
        if (atomic_load(stop))
            return false;
        pause_briefly();
    }
    pthread_rwlock_rdlock(&gate->lock);
    return true;
}

bool gate_try_enter(struct gate *gate)
{
    return pthread_rwlock_tryrdlock(&gate->lock) == 0;
}

bool gate_try_enter_for(struct gate *gate, uint64_t timeout_ns)
{
    uint64_t deadline = clock_ns() + timeout_ns;
    bool locked;

    while (!(locked = gate_try_enter(gate)) && clock_ns() < deadline)
        pause_briefly();
    return locked;
}

void gate_leave(struct gate *gate)
{
    pthread_rwlock_unlock(&gate->lock);
}

bool gate_has_waits(struct gate *gate)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&gate->waits_lock);

    list_for_each_safe (struct stream_wait, wait, &gate->waits, link) {
        if (!checkpoint_is_reached(&wait->passed))
            return true;
        list_remove(&wait->link);
        gate_wait_drop(wait);
    }
    return false;
}

static void unlock_members(struct gate *gate, unsigned count)
{
    while (count)
        pthread_rwlock_unlock(&gate->members[--count]->lock);
}

/* Locks the members with `lock`: none of them where one cannot be locked, or where a stream
 * waits. */
static bool lock_members(struct gate *gate, int (*lock)(pthread_rwlock_t *lock))
{
    for (unsigned i = 0; i < gate->member_count; i++) {
        bool locked = lock(&gate->members[i]->lock) == 0;

        if (locked && !gate_has_waits(gate->members[i]))
            continue;
        unlock_members(gate, locked ? i + 1 : i);
        return false;
    }
    return true;
}

/* No member of a group is kept locked while another one is waited for. */
static int (*lock_of(const struct gate *gate))(pthread_rwlock_t *lock)
{
    return gate->member_count == 1 ? pthread_rwlock_wrlock : pthread_rwlock_trywrlock;
}

bool gate_try_close(struct gate *gate)
{
    return lock_members(gate, pthread_rwlock_trywrlock);
}

/* Partner of the counters: is_calls_turn(). */
static void count_calls(struct gate *gate, int waiters, int tickets)
{
    for (unsigned i = 0; i < gate->member_count; i++) {
        atomic_fetch_add_explicit(&gate->members[i]->waiters, (unsigned)waiters,
                                  memory_order_release);
        atomic_fetch_add_explicit(&gate->members[i]->tickets, (unsigned)tickets,
                                  memory_order_release);
    }
}

/* ---- waits that last too long ---- */

/* Whether the stream has waited for so long. Work before the wait, however long, does not count. */
static bool is_overdue(struct stream_wait *wait, uint64_t now, uint64_t limit_ns)
{
    if (checkpoint_is_reached(&wait->passed))
        return false;
    if (!wait->since && checkpoint_is_reached(&wait->reached))
        wait->since = now;
    return wait->since && now - wait->since >= limit_ns;
}

/* The clients whose streams have waited for so long; how many. */
static unsigned find_overdue(struct gate *gate, uint64_t limit_ns, uint32_t clients[OVERDUE_MAX])
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&gate->waits_lock);
    uint64_t now = clock_ns();
    unsigned count = 0;

    list_for_each (struct stream_wait, wait, &gate->waits, link)
        if (count < OVERDUE_MAX && is_overdue(wait, now, limit_ns))
            clients[count++] = wait->client;
    return count;
}

/* Ends clients that keep this call away; false when the call waits for its own client alone, so
 * that no other client is to blame. */
static bool end_overdue(struct gate *gate, uint64_t limit_ns)
{
    uint32_t clients[OVERDUE_MAX];
    bool ended = false;
    unsigned count = find_overdue(gate, limit_ns, clients);

    for (unsigned i = 0; i < count; i++)
        ended |= gate->end_client && gate->end_client(gate->context, clients[i]);
    return ended || !count;
}

static bool end_overdue_members(struct gate *gate, uint64_t limit_ns)
{
    bool goes_on = true;

    for (unsigned i = 0; i < gate->member_count; i++)
        goes_on &= end_overdue(gate->members[i], limit_ns);
    return goes_on;
}

/* Each wait has the whole limit. From the third round on no wait has begun for as long. So a stream
 * that still waits has had the limit, or had several waits in a row. */
static uint64_t limit_in(uint64_t round)
{
    return round < 2 ? quota(QUOTA_WAIT_SECONDS) * NS_PER_SEC : 0;
}

/* Another call that waits for all streams may take its time, so only pauses count. */
static bool retry_lock(struct gate *gate)
{
    const uint64_t round = quota(QUOTA_WAIT_SECONDS) * PAUSES_A_SECOND;
    bool locked = false, goes_on = true;
    uint64_t pauses = 0;

    count_calls(gate, 1, 0);
    while (!locked && goes_on && pauses++ < ROUNDS_MAX * round) {
        if (pauses == round)
            count_calls(gate, 0, 1);
        pause_briefly();
        locked = lock_members(gate, lock_of(gate));
        if (!locked && pauses % LOOK_PAUSES == 0)
            goes_on = end_overdue_members(gate, limit_in(pauses / round));
    }
    count_calls(gate, -1, pauses >= round ? -1 : 0);
    return locked;
}

CUresult gate_close(struct gate *gate, const char *what)
{
    if (lock_members(gate, lock_of(gate)) || retry_lock(gate)) {
        activity_set_call(what);
        return CUDA_SUCCESS;
    }
    log_line("%s is refused: it waits for all streams, and one has waited for a value "
             "(cuStreamWaitValue) for too long",
             what);
    return CUDA_ERROR_NOT_READY;
}

void gate_open(struct gate *gate)
{
    activity_set_call(NULL);
    unlock_members(gate, gate->member_count);
}
