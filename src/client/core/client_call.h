/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which threads are inside the library. Every call of the program stands between call_begin() and
 * call_end(). A thread that has to change the state of all calls waits until every other thread is
 * outside or parked. A parked thread waits where the library may change under it.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client.h"

/* A thread's place. It is kept when the thread ends, for another one. */
struct call_place {
    _Atomic uint32_t depth;  /* atomic: 0 = outside */
    _Atomic uint32_t parked; /* atomic: inside, and the library may change */
    _Atomic bool blocked;    /* atomic: inside, and waits for a lock: call_mutex_hold() */
    bool taken;
    struct call_place *next;
};

extern __thread __attribute__((tls_model("initial-exec"))) struct call_place *call_place;
/* Atomic: no thread may come in at the moment. CALL_CLOSED: those inside are at rest. */
#define CALL_CLOSING 1u
#define CALL_CLOSED 2u
extern __attribute__((visibility("hidden"))) _Atomic uint32_t call_closed;

/* For the first call of a thread. Never NULL. */
struct call_place *call_place_take(void);

/* The slow path of call_begin(): the library is closed, or the server is gone. */
void call_enter_slowly(void);

/* The depth is stored before `call_closed` is loaded: partner call_close(). */
static inline void call_begin(void)
{
    struct call_place *place = call_place ? call_place : call_place_take();

    atomic_exchange_explicit(&place->depth, place->depth + 1, memory_order_seq_cst);
    if (__builtin_expect(atomic_load_explicit(&call_closed, memory_order_seq_cst) ||
                             channel_needs_attention(&client->channel),
                         0))
        call_enter_slowly();
}

static inline void call_end(void)
{
    struct call_place *place = call_place;

    atomic_store_explicit(&place->depth, place->depth - 1, memory_order_release);
}

/* call_begin() of the thread that runs the program's host functions. It comes in also while
 * functions are awaited, and begins no planned move: that might wait for a function. */
void call_begin_for_function(void);

/* The library is closed, but stays as it is until work has ended that may need host functions. */
void call_await_functions(bool awaited);

/* The calling thread is inside, and waits where the library may change under it. */
void call_park(void);
void call_unpark(void);

/* Ends a wait that began with call_park(): stays parked while the library is closed. */
void call_unpark_when_open(void);

/* The same, where it may change, in one: returns at once while the library is open. */
void call_park_while_closed(void);

/* Around a wait for a lock with which other threads may wait for the server. When that has ended,
 * such a thread may move the client meanwhile. Whether call_unblock() has to follow. */
bool call_block(void);
void call_unblock(void);

/* Takes such a lock, for a variable marked _cleanup_mutex_. Inline, so that a tracer of locks sees
 * the place that takes it. */
static inline pthread_mutex_t *call_mutex_hold(pthread_mutex_t *mutex)
{
    if (!pthread_mutex_trylock(mutex))
        return mutex;
    bool blocked = call_block();
    pthread_mutex_lock(mutex);
    if (blocked)
        call_unblock();
    return mutex;
}

/* Whether the calling thread is inside. The client's own threads are outside until they call
 * call_begin(). */
bool call_is_inside(void);

/* Only the outermost call of a thread sees everything at rest. */
bool call_is_outermost(void);

/* Keeps threads out, and waits until all that are inside are parked, the calling one included.
 * False when some are not after `timeout_ns`; then threads may come in again. Otherwise the caller
 * has to call call_open(). */
bool call_close(uint64_t timeout_ns);
void call_open(void);

/* The thread ends; its place is free for another one. */
void call_place_give(void);

/* In a child of fork, which has one thread and is outside. */
void call_after_fork(void);
