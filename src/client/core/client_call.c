/* SPDX-License-Identifier: Apache-2.0 */
/* Places of threads, and closing the library; see client_call.h. */
#include "client_call.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "cleanup.h"
#include "client_printf.h"
#include "client_thread.h"
#include "clock.h"
#include "recovery_hook.h"

#define POLL_NS 200000

__thread __attribute__((tls_model("initial-exec"))) struct call_place *call_place;
_Atomic uint32_t call_closed;

static _Atomic bool functions_awaited;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct call_place *places;

/* For threads for which there is no memory. They count as one thread that never leaves. */
static struct call_place shared_place = {.depth = 1};

static struct call_place *find_free_locked(void)
{
    for (struct call_place *place = places; place; place = place->next)
        if (!place->taken)
            return place;
    return NULL;
}

static struct call_place *add_locked(void)
{
    struct call_place *place = calloc(1, sizeof(*place));

    if (!place)
        return NULL;
    place->next = places;
    places = place;
    return place;
}

struct call_place *call_place_take(void)
{
    _cleanup_mutex_ pthread_mutex_t *held = mutex_hold(&lock);
    struct call_place *place = find_free_locked();

    if (!place)
        place = add_locked();
    if (!place)
        place = &shared_place;
    place->taken = true;
    call_place = place;
    thread_keep();
    return place;
}

void call_place_give(void)
{
    _cleanup_mutex_ pthread_mutex_t *held = mutex_hold(&lock);

    if (call_place)
        call_place->taken = call_place == &shared_place;
    call_place = NULL;
}

void call_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    atomic_store_explicit(&call_closed, 0, memory_order_relaxed);
    atomic_store_explicit(&functions_awaited, false, memory_order_relaxed);
    for (struct call_place *place = places; place; place = place->next) {
        place->depth = place == call_place ? place->depth : 0;
        place->parked = 0;
        place->blocked = false;
        place->taken = place == call_place;
    }
}

static void poll_pause(void)
{
    const struct timespec pause = {.tv_nsec = POLL_NS};

    nanosleep(&pause, NULL);
}

static bool is_closed(void)
{
    return atomic_load_explicit(&call_closed, memory_order_seq_cst);
}

/* Partner: is_closed_to_functions(). */
void call_await_functions(bool awaited)
{
    atomic_store_explicit(&functions_awaited, awaited, memory_order_seq_cst);
}

/* Partner: call_await_functions(). */
static bool is_closed_to_functions(void)
{
    return is_closed() && !atomic_load_explicit(&functions_awaited, memory_order_seq_cst);
}

void call_begin_for_function(void)
{
    struct call_place *place = call_place ? call_place : call_place_take();

    atomic_exchange_explicit(&place->depth, place->depth + 1, memory_order_seq_cst);
    while (is_closed_to_functions()) {
        call_park();
        poll_pause();
        call_unpark();
    }
}

/* While the client is being moved the error may be gone already, so the error alone does not say
 * whether a thread may enter. */
void call_enter_slowly(void)
{
    if (!call_is_outermost())
        return;
    /* What kernels printed before their fault is written by the first call that reports the fault.
     */
    if (recovery_error_slowly() != CUDA_SUCCESS)
        printf_output_write();
    recovery_consider_leaving();
    call_park_while_closed();
}

void call_park_while_closed(void)
{
    if (!is_closed())
        return;
    call_park();
    call_unpark_when_open();
}

void call_park(void)
{
    atomic_store_explicit(&call_place->parked, 1, memory_order_seq_cst);
}

void call_unpark(void)
{
    atomic_store_explicit(&call_place->parked, 0, memory_order_seq_cst);
}

/* The library may be closed again between the last look and call_unpark(), by a thread that has
 * still seen this one parked. */
void call_unpark_when_open(void)
{
    for (;;) {
        while (is_closed())
            poll_pause();
        call_unpark();
        if (!is_closed())
            return;
        call_park();
    }
}

static bool is_closed_at_rest(void)
{
    return atomic_load_explicit(&call_closed, memory_order_seq_cst) == CALL_CLOSED;
}

static void set_blocked(bool blocked)
{
    atomic_store_explicit(&call_place->blocked, blocked, memory_order_seq_cst);
}

bool call_block(void)
{
    bool counts = call_is_inside() && call_place != &shared_place && !call_place->parked;

    if (counts)
        set_blocked(true);
    return counts;
}

/* Partner: close_at_rest(). */
void call_unblock(void)
{
    for (;;) {
        while (is_closed_at_rest())
            poll_pause();
        set_blocked(false);
        if (!is_closed_at_rest())
            return;
        set_blocked(true);
    }
}

bool call_is_inside(void)
{
    return call_place && call_place->depth > 0;
}

bool call_is_outermost(void)
{
    return call_place && call_place != &shared_place && call_place->depth == 1;
}

/* The owner of the lock may be the thread that wants to move the client, or wait for that. While
 * the server is well the lock comes soon. Partner: call_unblock(). */
static bool is_blocked(const struct call_place *place)
{
    return atomic_load_explicit(&place->blocked, memory_order_seq_cst) &&
           channel_error(&client->channel) != CUDA_SUCCESS;
}

static bool is_at_rest(const struct call_place *place)
{
    return !atomic_load_explicit(&place->depth, memory_order_seq_cst) ||
           atomic_load_explicit(&place->parked, memory_order_seq_cst) || is_blocked(place);
}

static bool all_are_at_rest(void)
{
    _cleanup_mutex_ pthread_mutex_t *held = mutex_hold(&lock);

    for (const struct call_place *place = places; place; place = place->next)
        if (!is_at_rest(place))
            return false;
    return !shared_place.taken;
}

static void set_closed(uint32_t state)
{
    atomic_store_explicit(&call_closed, state, memory_order_seq_cst);
}

/* A blocked thread that has got its lock may go on until it sees this, so all are looked at again.
 * Partner: call_unblock(). */
static bool close_at_rest(void)
{
    if (!all_are_at_rest())
        return false;
    set_closed(CALL_CLOSED);
    if (all_are_at_rest())
        return true;
    set_closed(CALL_CLOSING);
    return false;
}

bool call_close(uint64_t timeout_ns)
{
    uint64_t until = clock_ns() + timeout_ns;

    set_closed(CALL_CLOSING);
    while (!close_at_rest()) {
        if (clock_ns() > until) {
            call_open();
            return false;
        }
        poll_pause();
    }
    return true;
}

void call_open(void)
{
    set_closed(0);
}
