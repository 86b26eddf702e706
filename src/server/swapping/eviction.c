/* SPDX-License-Identifier: Apache-2.0 */
/* See eviction.h. */
#include "eviction.h"

#include <time.h>

#include "accounting.h"
#include "cleanup.h"
#include "client_class.h"
#include "clock.h"
#include "fence.h"
#include "launch_batch.h"
#include "log.h"
#include "quota.h"
#include "server_life.h"
#include "session_life.h"
#include "suspend.h"
#include "suspend_order.h"
#include "suspend_result.h"
#include "swap.h"
#include "swap_slices.h"
#include "swapping.h"

#define PAUSE_NS (2 * NS_PER_MS)

/* How often the first of the line asks the driver, though no client of the server has left. */
#define LOOK_NS (50 * NS_PER_MS)

/* How long a client that cannot leave is not asked again. */
#define REFUSAL_NS (5 * NS_PER_SEC)

/* On the stack of the session's thread. */
struct room_wait {
    struct list link;
    struct session *session;
    uint64_t need[SERVER_MAX_DEVICES]; /* bytes */
    const struct device *device;       /* in whose context the attempt is made; NULL: `returns` */
    bool returns;
    uint64_t deadline;       /* clock_ns(); 0 = none */
    uint64_t freed, look_at; /* what `freed` was at the last look, and when the next one is */
    bool in_vain;            /* all that may leave is not enough */
};

static struct server_eviction *eviction_of(const struct server *server)
{
    return &server->swapping->eviction;
}

void server_eviction_init(struct server *server)
{
    list_init(&eviction_of(server)->line);
    eviction_of(server)->pace.factor = 1;
    memory_set_room_maker(server, eviction_make_room);
}

void session_eviction_init(struct session *session)
{
    session->swapping->eviction.stay.since = clock_ns();
}

bool eviction_takes_part(const struct session *session)
{
    return atomic_load_explicit(&session->limits.oversubscribe, memory_order_relaxed);
}

/* ---- whose memory leaves; under the server's lock ---- */

static uint64_t bytes_on(const struct session *session, unsigned device)
{
    uint64_t used, peak;

    memory_usage(session, device, &used, &peak);
    return used;
}

static uint64_t bytes_of(const struct session *session)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < session->server->devices.count; i++)
        bytes += bytes_on(session, i);
    return bytes;
}

static bool is_away(const struct session *session)
{
    return session->swapping->order.out;
}

static bool is_under_orders(const struct session *session)
{
    return is_away(session) ? program_suspend_leaves_more(session)
                            : program_suspend_is_wanted(session);
}

/* Of a client that stands still, only what it has on the device counts, not variables. */
static uint64_t bytes_to_leave(const struct session *session, unsigned device)
{
    if (!is_away(session))
        return bytes_on(session, device);
    return program_suspend_has_rest(session) ? session->swapping->eviction.rest[device] : 0;
}

/* At some time. */
static bool could_leave(const struct session *session, const struct room_wait *wait,
                        unsigned device, uint64_t now)
{
    const struct session_eviction *eviction = &session->swapping->eviction;

    return session != wait->session && session->phase == SESSION_SERVING && !session->stop &&
           eviction_takes_part(session) && session->limits.class != CLASS_CRITICAL &&
           bytes_to_leave(session, device) && now >= eviction->obstacle_until;
}

/* The thread of a client that waits for memory runs no command. */
static bool is_idle(const struct session *session)
{
    return session->swapping->eviction.in_line || session->swapping->eviction.idle_since;
}

static uint64_t quantum_of(const struct session *session, uint64_t bytes)
{
    return memory_stay_quantum(&eviction_of(session->server)->pace,
                               &session->swapping->eviction.stay, bytes, is_idle(session),
                               quota(QUOTA_STAY_SECONDS) * NS_PER_SEC);
}

/* A client that waits for memory gains nothing by its quantum, and a critical one waits for none.
 */
static bool may_leave_now(const struct session *session, const struct room_wait *wait, uint64_t now)
{
    const struct session_eviction *eviction = &session->swapping->eviction;
    unsigned class = wait->session->limits.class;

    if (class == CLASS_BATCH && session->limits.class != CLASS_BATCH && !is_idle(session) &&
        !is_away(session))
        return false;
    return class == CLASS_CRITICAL || eviction->in_line || is_away(session) ||
           now - eviction->stay.since >= quantum_of(session, bytes_of(session));
}

static struct resident resident_of(const struct session *session, unsigned device, uint64_t now)
{
    const struct session_eviction *eviction = &session->swapping->eviction;
    uint64_t since = eviction->idle_since ? eviction->idle_since : eviction->stay.since;

    return (struct resident){.is_rest = is_away(session),
                             .class = session->limits.class,
                             .is_idle = is_idle(session),
                             .bytes = bytes_to_leave(session, device),
                             .ns = now - since};
}

static struct session *choose_locked(const struct room_wait *wait, unsigned device, uint64_t need,
                                     uint64_t now)
{
    struct session *first = NULL;
    struct resident leaves = {0};

    list_for_each (struct session, session, &wait->session->server->sessions, link) {
        if (!could_leave(session, wait, device, now) || is_under_orders(session) ||
            !may_leave_now(session, wait, now))
            continue;
        struct resident resident = resident_of(session, device, now);
        if (first && !resident_leaves_before(&resident, &leaves, need))
            continue;
        first = session;
        leaves = resident;
    }
    return first;
}

/* Its memory is about to be free, unless a kernel of it never ends. */
static bool is_ending(const struct session *session)
{
    return session->stop && !session->life->abandoned;
}

/* What an order says, and no more than there is. */
static uint64_t bytes_ordered(const struct session *session, unsigned device)
{
    uint64_t bytes = bytes_to_leave(session, device);
    const struct session_eviction *eviction = &session->swapping->eviction;

    return eviction->ordered_for && eviction->ordered < bytes ? eviction->ordered : bytes;
}

/* The bytes of clients that are about to leave, or of all that could. */
static uint64_t count_locked(const struct room_wait *wait, unsigned device, uint64_t now,
                             bool ordered)
{
    uint64_t bytes = 0;

    list_for_each (struct session, session, &wait->session->server->sessions, link) {
        if (is_ending(session))
            bytes += bytes_on(session, device);
        else if (could_leave(session, wait, device, now) && (!ordered || is_under_orders(session)))
            bytes += ordered ? bytes_ordered(session, device) : bytes_to_leave(session, device);
    }
    return bytes;
}

/* Their threads look at an order before each command, so the order is repeated. */
static void repeat_orders_locked(const struct room_wait *wait)
{
    list_for_each (struct session, session, &wait->session->server->sessions, link)
        if (session->swapping->eviction.ordered_for == wait->session->id)
            suspend_order_repeat_locked(session);
}

static void evict_for(const struct room_wait *wait, struct session *session,
                      const struct swap_part *part)
{
    struct session_eviction *eviction = &session->swapping->eviction;

    eviction->ordered_for = wait->session->id;
    eviction->ordered = wait->returns ? part->bytes : UINT64_MAX;
    suspend_order_evict_locked(session, wait->returns ? part : NULL);
}

static void order_locked(const struct room_wait *wait, unsigned device, uint64_t missing)
{
    uint64_t now = clock_ns(), leaving = count_locked(wait, device, now, true);

    while (leaving < missing) {
        const struct swap_part part = {device, missing - leaving};
        struct session *session = choose_locked(wait, device, part.bytes, now);
        if (!session)
            return;
        evict_for(wait, session, &part);
        leaving += bytes_ordered(session, device);
    }
}

/* Those that have not left yet stay. */
static void withdraw_orders_locked(const struct room_wait *wait)
{
    list_for_each (struct session, session, &wait->session->server->sessions, link) {
        if (session->swapping->eviction.ordered_for != wait->session->id)
            continue;
        session->swapping->eviction.ordered_for = 0;
        suspend_order_withdraw_locked(session);
    }
}

/* ---- the line ---- */

static void enter_line(struct room_wait *wait)
{
    struct server *server = wait->session->server;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    list_append(&eviction_of(server)->line, &wait->link);
    wait->session->swapping->eviction.in_line++;
}

static void leave_line(struct room_wait *wait)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&wait->session->server->lock);

    list_remove(&wait->link);
    wait->session->swapping->eviction.in_line--;
    withdraw_orders_locked(wait);
}

static bool needs_same_device(const struct room_wait *a, const struct room_wait *b)
{
    for (unsigned i = 0; i < SERVER_MAX_DEVICES; i++)
        if (a->need[i] && b->need[i])
            return true;
    return false;
}

static bool is_first(const struct room_wait *wait)
{
    struct server *server = wait->session->server;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    list_for_each (struct room_wait, other, &eviction_of(server)->line, link) {
        if (other == wait)
            break;
        if (needs_same_device(wait, other))
            return false;
    }
    return true;
}

/* What a client lacks that has returned in part. */
static void count_need(struct room_wait *wait)
{
    for (unsigned i = 0; i < wait->session->server->devices.count; i++)
        wait->need[i] = swap_bytes(wait->session, i);
}

/* The bytes that a device lacks; 0 when all of them have enough. */
static uint64_t find_missing(const struct room_wait *wait, unsigned *ret_device)
{
    struct session *session = wait->session;
    size_t free_bytes, total;

    for (unsigned i = 0; i < session->server->devices.count; i++) {
        if (!wait->need[i] || session_visit(session, session_device(session, i)) ||
            driver.cuMemGetInfo_v2(&free_bytes, &total) || free_bytes >= wait->need[i])
            continue;
        *ret_device = i;
        return wait->need[i] - free_bytes;
    }
    return 0;
}

static unsigned first_device(const struct room_wait *wait)
{
    unsigned device = 0;

    while (device < SERVER_MAX_DEVICES - 1 && !wait->need[device])
        device++;
    return device;
}

static void make_room(struct room_wait *wait, unsigned device, uint64_t missing)
{
    struct server *server = wait->session->server;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    wait->in_vain = count_locked(wait, device, clock_ns(), false) < missing;
    if (wait->in_vain)
        return;
    order_locked(wait, device, missing);
    repeat_orders_locked(wait);
}

/* In the context that the caller had. */
static CUresult attempt_there(const struct room_wait *wait, memory_attempt *attempt, void *context)
{
    CUresult result = wait->device ? session_enter(wait->session, wait->device) : CUDA_SUCCESS;

    return result == CUDA_SUCCESS ? attempt(wait->session, context) : result;
}

/* Orders come first, because a return takes what there is, and then what victims leave. */
static CUresult try_return_now(struct room_wait *wait, memory_attempt *attempt, void *context)
{
    unsigned device = first_device(wait);
    uint64_t missing = find_missing(wait, &device);

    if (missing)
        make_room(wait, device, missing);
    CUresult result = attempt(wait->session, context);
    if (result != CUDA_ERROR_OUT_OF_MEMORY)
        return result;
    count_need(wait);
    device = first_device(wait);
    if (!missing)
        make_room(wait, device, wait->need[device]);
    return result;
}

/* Free memory in pieces may not be enough; then one more client leaves. */
static CUresult try_now(struct room_wait *wait, memory_attempt *attempt, void *context)
{
    unsigned device = first_device(wait);
    uint64_t missing = find_missing(wait, &device);
    CUresult result = missing ? CUDA_ERROR_OUT_OF_MEMORY : attempt_there(wait, attempt, context);

    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        make_room(wait, device, missing ? missing : 1);
    return result;
}

static bool is_time(struct room_wait *wait)
{
    uint64_t freed = eviction_of(wait->session->server)->freed;

    if (freed == wait->freed && clock_ns() < wait->look_at)
        return false;
    wait->freed = freed;
    wait->look_at = clock_ns() + LOOK_NS;
    return true;
}

static bool goes_on(const struct room_wait *wait)
{
    const struct session *session = wait->session;

    if (session->stop || !eviction_takes_part(session))
        return false;
    if (wait->returns)
        return !program_suspend_is_wanted(session) && !program_suspend_leaves_more(session);
    return !wait->in_vain && clock_ns() < wait->deadline;
}

static void rest(struct session *session)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};

    session_set_at_rest(session, true);
    nanosleep(&pause, NULL);
    session_set_at_rest(session, false);
}

/* Another client, or an operator, wants the memory of this one meanwhile. */
static void give_way(struct room_wait *wait)
{
    leave_line(wait);
    program_suspend_follow_in_call(wait->session);
    enter_line(wait);
}

static CUresult wait_for_room(struct room_wait *wait, memory_attempt *attempt, void *context)
{
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

    enter_line(wait);
    while (result == CUDA_ERROR_OUT_OF_MEMORY && goes_on(wait)) {
        if (!wait->returns && program_suspend_is_wanted(wait->session))
            give_way(wait);
        if (is_first(wait) && is_time(wait))
            result = wait->returns ? try_return_now(wait, attempt, context)
                                   : try_now(wait, attempt, context);
        if (result == CUDA_ERROR_OUT_OF_MEMORY && goes_on(wait))
            rest(wait->session);
    }
    leave_line(wait);
    return result;
}

/* ---- new memory ---- */

static void note_arrival(struct session *session)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->server->lock);

    session->swapping->eviction.stay.since = clock_ns();
}

static void log_refusal(const struct room_wait *wait, uint64_t size)
{
    unsigned long long mebibytes = size >> 20;

    if (wait->in_vain)
        session_log_error(
            wait->session,
            "all that other programs could give up is not enough for %llu MiB: they "
            "do not oversubscribe, are critical, or cannot leave (funnel why says so)",
            mebibytes);
    else if (!wait->session->stop)
        session_log_error(wait->session,
                          "no other program has made room for %llu MiB within %llu s (the quota "
                          "room-seconds)",
                          mebibytes, (unsigned long long)quota(QUOTA_ROOM_SECONDS));
}

CUresult eviction_make_room(struct session *session, const struct device *device, uint64_t size,
                            memory_attempt *attempt, void *context)
{
    struct room_wait wait = {.session = session,
                             .device = device,
                             .deadline = clock_ns() + quota(QUOTA_ROOM_SECONDS) * NS_PER_SEC};

    if (!eviction_takes_part(session))
        return CUDA_ERROR_OUT_OF_MEMORY;
    wait.need[device->ordinal] = size;
    launch_batch_flush(session);
    activity_set_stage(&session->activity, "a wait for memory");
    CUresult result = wait_for_room(&wait, attempt, context);
    activity_set_stage(&session->activity, NULL);
    session_enter(session, device);
    if (result == CUDA_SUCCESS)
        note_arrival(session);
    else if (result == CUDA_ERROR_OUT_OF_MEMORY)
        log_refusal(&wait, size);
    return result;
}

/* ---- what has stayed ---- */

static void count_rest(struct session *session)
{
    for (unsigned i = 0; i < session->server->devices.count; i++)
        session->swapping->eviction.rest[i] = swap_bytes_here(session, i);
}

bool eviction_has_rest(const struct session *session)
{
    for (unsigned i = 0; i < session->server->devices.count; i++)
        if (session->swapping->eviction.rest[i])
            return true;
    return false;
}

/* ---- an evicted client returns ---- */

struct return_attempt {
    int result; /* enum suspend_result */
    uint64_t bytes, ns;
};

static CUresult try_return(struct session *session, void *context)
{
    struct return_attempt *attempt = context;
    uint64_t began = clock_ns();

    attempt->result = swap_slices_in(session);
    attempt->ns += clock_ns() - began;
    return attempt->result == SUSPEND_NO_MEMORY ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

static void note_return(struct session *session, const struct return_attempt *attempt,
                        uint64_t called_at)
{
    struct server_eviction *eviction = eviction_of(session->server);
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->server->lock);

    if (memory_stay_returns(&eviction->pace, &session->swapping->eviction.stay, attempt->bytes,
                            attempt->ns, called_at, quantum_of(session, attempt->bytes)))
        log_line("Programs that share device memory stay on the device for %u times as long as at "
                 "first",
                 eviction->pace.factor);
}

int eviction_return(struct session *session)
{
    struct room_wait wait = {.session = session, .returns = true};
    struct return_attempt attempt = {.result = SUSPEND_NO_MEMORY};
    uint64_t called_at = clock_ns();

    count_need(&wait);
    for (unsigned i = 0; i < session->server->devices.count; i++)
        attempt.bytes += wait.need[i];
    activity_set_stage(&session->activity, "a wait for memory");
    wait_for_room(&wait, try_return, &attempt);
    if (attempt.result == SUSPEND_OK)
        note_return(session, &attempt, called_at);
    else
        count_rest(session);
    return attempt.result;
}

/* ---- those that are ordered ---- */

void eviction_note_leaving(struct session *session, uint64_t bytes)
{
    accounting_note_swapped_out(session, bytes);
    count_rest(session);
    session->swapping->eviction.obstacle = SUSPEND_OK;
}

void eviction_note_return(struct session *session, uint64_t bytes)
{
    accounting_note_swapped_in(session, bytes);
}

void eviction_has_left(struct session *session)
{
    struct server_eviction *eviction = eviction_of(session->server);
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->server->lock);

    session->swapping->eviction.ordered_for = 0;
    eviction->freed++;
    if (is_away(session))
        return;
    session->swapping->eviction.stay.left_at = clock_ns();
    accounting_note_eviction(session);
}

void eviction_has_refused(struct session *session, int result)
{
    struct session_eviction *eviction = &session->swapping->eviction;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->server->lock);

    eviction->ordered_for = 0;
    eviction->obstacle = result;
    eviction->obstacle_until = clock_ns() + REFUSAL_NS;
}

/* ---- the watchdog ---- */

static bool is_at_work(const struct session *session)
{
    return session->life->load.busy_samples || fence_any_pending(session);
}

void eviction_watch(struct server *server)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    list_for_each (struct session, session, &server->sessions, link) {
        uint64_t *since = &session->swapping->eviction.idle_since;
        if (!eviction_takes_part(session) || session->phase != SESSION_SERVING)
            continue;
        if (is_at_work(session))
            *since = 0;
        else if (!*since)
            *since = clock_ns();
    }
}
