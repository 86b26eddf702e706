/* SPDX-License-Identifier: Apache-2.0 */
/* See room_line.h. */
#include "room_line.h"

#include <time.h>

#include "cleanup.h"
#include "clock.h"
#include "suspend.h"
#include "swap.h"
#include "swapping.h"
#include "victims.h"

#define PAUSE_NS (2 * NS_PER_MS)

/* How often the first of the line asks the driver, though no client of the server has left. */
#define LOOK_NS (50 * NS_PER_MS)

static struct server_eviction *eviction_of(const struct server *server)
{
    return &server->swapping->eviction;
}

static void enter_line(struct room_wait *wait, bool in_front)
{
    struct server *server = wait->session->server;
    struct list *line = &eviction_of(server)->line;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    if (in_front)
        list_insert(line, &wait->link);
    else
        list_append(line, &wait->link);
    wait->session->swapping->eviction.in_line++;
}

static void leave_line(struct room_wait *wait)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&wait->session->server->lock);

    list_remove(&wait->link);
    wait->session->swapping->eviction.in_line--;
    victims_withdraw_locked(wait);
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
void room_line_count_need(struct room_wait *wait)
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

/* False when not enough is about to leave. */
static bool make_room(struct room_wait *wait, unsigned device, uint64_t missing)
{
    struct server *server = wait->session->server;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    wait->in_vain = victims_could_give_locked(wait, device) < missing;
    bool is_enough = !wait->in_vain && victims_order_locked(wait, device, missing);
    victims_repeat_locked(wait);
    return is_enough;
}

/* In the context that the caller had. */
static CUresult attempt_there(const struct room_wait *wait, memory_attempt *attempt, void *context)
{
    CUresult result = wait->device ? session_enter(wait->session, wait->device) : CUDA_SUCCESS;

    return result == CUDA_SUCCESS ? attempt(wait->session, context) : result;
}

/* Orders come first, because a return takes what there is, and then what victims leave. Until
 * enough leaves it takes nothing, so that those that run find what is free. */
static CUresult try_return_now(struct room_wait *wait, memory_attempt *attempt, void *context)
{
    unsigned device = first_device(wait);
    uint64_t missing = find_missing(wait, &device);

    if (missing && !make_room(wait, device, missing))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = attempt(wait->session, context);
    if (result != CUDA_ERROR_OUT_OF_MEMORY)
        return result;
    room_line_count_need(wait);
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

/* Another client, or an operator, wants the memory of this one meanwhile. Who has left and returned
 * is the first then. Behind a client that left for the return it would have to give way to that
 * again, and so on. Who could not leave yet stays behind the one that it shall leave for. */
static void give_way(struct room_wait *wait)
{
    const unsigned *returns = &wait->session->swapping->eviction.returns, before = *returns;

    leave_line(wait);
    program_suspend_follow_in_call(wait->session);
    enter_line(wait, *returns != before);
}

CUresult room_line_wait(struct room_wait *wait, memory_attempt *attempt, void *context)
{
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

    enter_line(wait, false);
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
