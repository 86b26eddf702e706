/* SPDX-License-Identifier: Apache-2.0 */
/* See eviction.h. */
#include "eviction.h"

#include "accounting.h"
#include "cleanup.h"
#include "clock.h"
#include "fence.h"
#include "launch_batch.h"
#include "log.h"
#include "quota.h"
#include "room_line.h"
#include "server_life.h"
#include "session_life.h"
#include "suspend_result.h"
#include "swap.h"
#include "swap_slices.h"
#include "swapping.h"
#include "victims.h"

/* How long a client that cannot leave is not asked again. */
#define REFUSAL_NS (5 * NS_PER_SEC)

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
    CUresult result = room_line_wait(&wait, attempt, context);
    activity_set_stage(&session->activity, NULL);
    session_enter(session, device);
    if (result == CUDA_SUCCESS)
        note_arrival(session);
    else if (result == CUDA_ERROR_OUT_OF_MEMORY)
        log_refusal(&wait, size);
    return result;
}

/* ---- what has stayed ---- */

static void count_resident_memory(struct session *session)
{
    for (unsigned i = 0; i < session->server->devices.count; i++)
        session->swapping->eviction.resident[i] = swap_bytes_here(session, i);
}

bool eviction_has_resident_memory(const struct session *session)
{
    for (unsigned i = 0; i < session->server->devices.count; i++)
        if (session->swapping->eviction.resident[i])
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
    if (attempt->result == SUSPEND_NO_MEMORY)
        count_resident_memory(session);
    return attempt->result == SUSPEND_NO_MEMORY ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

static void note_return(struct session *session, const struct return_attempt *attempt,
                        uint64_t called_at)
{
    struct server_eviction *eviction = eviction_of(session->server);
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->server->lock);

    if (memory_stay_returns(&eviction->pace, &session->swapping->eviction.stay, attempt->bytes,
                            attempt->ns, called_at, victims_quantum(session, attempt->bytes)))
        log_line("Programs that share device memory stay on the device for %u times as long as at "
                 "first",
                 eviction->pace.factor);
}

int eviction_return(struct session *session)
{
    struct room_wait wait = {.session = session, .returns = true};
    struct return_attempt attempt = {.result = SUSPEND_NO_MEMORY};
    uint64_t called_at = clock_ns();

    room_line_count_need(&wait);
    for (unsigned i = 0; i < session->server->devices.count; i++)
        attempt.bytes += wait.need[i];
    activity_set_stage(&session->activity, "a wait for memory");
    room_line_wait(&wait, try_return, &attempt);
    if (attempt.result == SUSPEND_OK)
        note_return(session, &attempt, called_at);
    return attempt.result;
}

/* ---- those that are ordered ---- */

void eviction_note_leaving(struct session *session, uint64_t bytes)
{
    accounting_note_swapped_out(session, bytes);
    count_resident_memory(session);
    session->swapping->eviction.obstacle = SUSPEND_OK;
}

void eviction_note_return(struct session *session, uint64_t bytes)
{
    accounting_note_swapped_in(session, bytes);
    session->swapping->eviction.returns++;
}

void eviction_has_left(struct session *session)
{
    struct server_eviction *eviction = eviction_of(session->server);
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->server->lock);

    session->swapping->eviction.ordered_for = 0;
    eviction->freed++;
    if (session->swapping->order.out)
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
