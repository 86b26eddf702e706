/* SPDX-License-Identifier: Apache-2.0 */
/* Fence words and how a thread waits for one; see client_fence.h. */
#include "client_fence.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "cleanup.h"
#include "client.h"
#include "client_call.h"
#include "client_printf.h"
#include "client_ranges.h"
#include "clock.h"
#include "deferred_signals.h"
#include "futex.h"
#include "recovery_hook.h"
#include "spin.h"
#include "timed_poll.h"
#include "wait_forecast.h"
#include "wire_calls.h"

/* The GPU wakes no thread, and the server's wake may come late: the word is read again at least
 * this often. */
#define RECHECK_NS (4 * UINT64_C(1000000))
#define POLL_NS 50000

/* How often a thread that waits asks whether the server is still there. */
#define ALIVE_EVERY_NS (5 * UINT64_C(1000000))

/* Being woken by a GPU costs half a millisecond, so a thread spins for a hundred times that. CUDA's
 * own waiting never sleeps unless it is asked to. */
#define SPIN_NS (100 * UINT64_C(1000000))

/* Where a thread spins when the number is due, it spins so many times as long as otherwise. */
#define DUE_SPINS 2

struct fence_word {
    _Atomic uint32_t issued;    /* atomic; written under the channel lock */
    struct wait_forecast waits; /* while CPUs are short */
    int device;
    uint64_t context, primary; /* ids */
    bool used;
};

static struct fence_words {
    pthread_mutex_t lock;
    struct fence_word *words;
    uint32_t *given; /* ring of words given back, oldest first */
    uint32_t given_first, given_count;
    _Atomic uint32_t used; /* words from here on were never taken */
} fences;

int fence_init(void)
{
    pthread_mutex_init(&fences.lock, NULL);
    fences.words = calloc(client->fence_count, sizeof(*fences.words));
    fences.given = calloc(client->fence_count, sizeof(*fences.given));
    fences.given_first = fences.given_count = 0;
    atomic_init(&fences.used, 0);
    return fences.words && fences.given ? 0 : -1;
}

static uint32_t read_word(uint32_t word)
{
    return atomic_load_explicit(&client->fences[word], memory_order_acquire);
}

uint32_t fence_issued(uint32_t word)
{
    return atomic_load_explicit(&fences.words[word].issued, memory_order_acquire);
}

bool fence_word_idle(uint32_t word)
{
    return fence_reached(read_word(word), fence_issued(word));
}

/* Only the oldest is checked: it is the one most likely to be idle. */
static uint32_t reuse_word_locked(void)
{
    uint32_t word;

    if (fences.given_count == 0)
        return FENCE_NONE;
    word = fences.given[fences.given_first];
    if (!fence_word_idle(word))
        return FENCE_NONE;
    fences.given_first = (fences.given_first + 1) % client->fence_count;
    fences.given_count--;
    return word;
}

uint32_t fence_word_take(int device, uint64_t context, uint64_t primary)
{
    _cleanup_deferring_mutex_ pthread_mutex_t *lock = deferring_mutex_hold(&fences.lock);
    uint32_t word = reuse_word_locked();

    if (word == FENCE_NONE && fences.used < client->fence_count)
        word = atomic_fetch_add_explicit(&fences.used, 1, memory_order_acq_rel);
    if (word == FENCE_NONE)
        return FENCE_NONE;
    fences.words[word].device = device;
    fences.words[word].context = context;
    fences.words[word].primary = primary;
    fences.words[word].used = true;
    return word;
}

void fence_word_give(uint32_t word)
{
    _cleanup_deferring_mutex_ pthread_mutex_t *lock = deferring_mutex_hold(&fences.lock);

    fences.words[word].used = false;
    fences.given[(fences.given_first + fences.given_count) % client->fence_count] = word;
    fences.given_count++;
}

/* 0 in a command means that it carries no fence. */
uint32_t fence_next(uint32_t word)
{
    uint32_t seq = fences.words[word].issued + 1;

    return seq ? seq : 1;
}

uint32_t fence_issue(uint32_t word)
{
    uint32_t seq = fence_next(word);

    atomic_store_explicit(&fences.words[word].issued, seq, memory_order_release);
    return seq;
}

bool fence_passed(struct fence fence)
{
    return fence.word == FENCE_NONE || fence_reached(read_word(fence.word), fence.seq);
}

/* Another thread may destroy the stream meanwhile: before that it is taken out of the handles, with
 * the same lock. False when it is gone; its fence is written all the same. */
static bool ask_to_be_woken(struct fence fence, uint64_t stream)
{
    struct wire_fnWake in = {.hStream = stream, .seq = fence.seq};
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);

    if (!handles_get(&client->handles, WIRE_STREAM, stream))
        return false;
    channel_lock(&client->channel);
    wire_fnWake(&client->channel, &in);
    channel_unlock(&client->channel);
    return true;
}

/* Apart, and seldom called: a critical program waits while a batch lane has work. */
static __attribute__((noinline)) void tell_of_wait(struct fence fence, uint64_t stream)
{
    struct wire_fnHold in = {.hStream = stream, .seq = fence.seq};
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);

    if (fence_passed(fence) || !handles_get(&client->handles, WIRE_STREAM, stream))
        return;
    channel_lock(&client->channel);
    wire_fnHold(&client->channel, &in);
    channel_unlock(&client->channel);
}

static void sleep_once(struct fence fence, uint32_t value, bool woken, struct timed_poll *poll)
{
    const struct timespec interval = {0, POLL_NS};

    if (woken || !timed_poll_needs_wake(poll))
        futex_wait((const uint32_t *)&client->fences[fence.word], value,
                   timed_poll_next(poll, RECHECK_NS));
    else
        nanosleep(&interval, NULL);
}

/* The client moves to another server while the thread waits, here or by another thread. */
static void leave_meanwhile(void)
{
    recovery_consider_leaving();
    if (call_is_inside())
        call_park_while_closed();
}

/* A server that was killed reports no error; only its socket tells. `now` is clock_ns(), or 0 while
 * the clock has not been read. */
static void ask_for_life_sign(uint64_t now, uint64_t *asked)
{
    if (*asked == 0)
        *asked = now;
    if (now - *asked <= ALIVE_EVERY_NS)
        return;
    channel_alive(&client->channel);
    *asked = now;
    if (channel_leave(&client->channel))
        leave_meanwhile();
}

/* The server's wake is a function that the GPU's driver calls behind the fence. Each such call
 * holds up the launches of all clients, and most waits are over before one is needed. */
static CUresult sleep_in_turns(struct fence fence, uint64_t stream, struct timed_poll *poll)
{
    uint64_t asked = clock_ns();
    bool woken = false;

    for (;;) {
        uint32_t value = read_word(fence.word);

        if (fence_reached(value, fence.seq))
            return CUDA_SUCCESS;
        ask_for_life_sign(clock_ns(), &asked);
        if (recovery_error() != CUDA_SUCCESS)
            return client_error();
        if (!woken && stream && timed_poll_needs_wake(poll))
            woken = ask_to_be_woken(fence, stream);
        sleep_once(fence, value, woken, poll);
    }
}

/* CUDA_ERROR_NOT_READY when the spin is over before the wait. */
static inline CUresult spin_until(struct fence fence, enum fence_wait_mode mode, struct spin spin)
{
    uint64_t asked = 0;

    do {
        if (fence_passed(fence))
            return CUDA_SUCCESS;
        ask_for_life_sign(spin.last_check, &asked);
        if (recovery_error() != CUDA_SUCCESS)
            return client_error();
    } while (mode == FENCE_SPIN && spin_more(&spin));
    return CUDA_ERROR_NOT_READY;
}

static CUresult sleep_until(struct fence fence, uint64_t stream,
                            struct timed_poll_scarcity scarcity)
{
    struct timed_poll poll = timed_poll_begin(scarcity);
    CUresult result = sleep_in_turns(fence, stream, &poll);

    timed_poll_end(&poll);
    return result;
}

static CUresult spin_then_sleep(struct fence fence, uint64_t stream, enum fence_wait_mode mode,
                                struct timed_poll_scarcity scarcity)
{
    CUresult result = spin_until(fence, mode, channel_spin_begin(&client->channel, SPIN_NS));

    return result == CUDA_ERROR_NOT_READY ? sleep_until(fence, stream, scarcity) : result;
}

static void sleep_until_due(struct fence fence, struct timed_poll *poll)
{
    uint32_t value = read_word(fence.word);

    if (fence_reached(value, fence.seq))
        return;
    sleep_once(fence, value, false, poll);
    timed_poll_note_lateness(poll);
}

/* The thread spins when the number is due, and not before. */
static CUresult sleep_then_spin(struct fence fence, uint64_t stream, enum fence_wait_mode mode,
                                struct timed_poll_scarcity scarcity)
{
    struct timed_poll poll = timed_poll_begin(scarcity);

    sleep_until_due(fence, &poll);
    struct spin spin = channel_spin_begin(&client->channel, SPIN_NS);
    spin.budget *= DUE_SPINS;
    CUresult result = spin_until(fence, mode, spin);
    if (result == CUDA_ERROR_NOT_READY)
        result = sleep_in_turns(fence, stream, &poll);
    timed_poll_end(&poll);
    return result;
}

/* A training that yields its CPU does so at once, and for longer than most of its waits. */
static __attribute__((noinline)) CUresult wait_while_short(struct fence fence, uint64_t stream,
                                                           enum fence_wait_mode mode,
                                                           struct channel_load load)
{
    struct wait_forecast *waits = &fences.words[fence.word].waits;
    const struct timed_poll_scarcity scarcity = {load.spin_ns,
                                                 load.yield_ns ? 0 : wait_forecast_ns(waits)};
    const uint64_t began = clock_ns();
    CUresult result = timed_poll_sleeps_first(scarcity)
                          ? sleep_then_spin(fence, stream, mode, scarcity)
                          : spin_then_sleep(fence, stream, mode, scarcity);

    uint64_t took = clock_ns() - began;
    if (timed_poll_counts(scarcity, took))
        wait_forecast_note(waits, took);
    return result;
}

static CUresult wait_until(struct fence fence, uint64_t stream, enum fence_wait_mode mode)
{
    const struct channel_load load = channel_load(&client->channel);

    if (stream && __builtin_expect(channel_hold_wanted(&client->channel), 0))
        tell_of_wait(fence, stream);
    if (load.spin_ns && !fence_passed(fence))
        return wait_while_short(fence, stream, mode, load);
    return spin_then_sleep(fence, stream, mode, (struct timed_poll_scarcity){0});
}

/* The thread writes the kernels' output before it reports their error. */
CUresult fence_wait(struct fence fence, uint64_t stream, enum fence_wait_mode mode)
{
    CUresult result = wait_until(fence, stream, mode);

    printf_output_write();
    return result;
}

/* Apart, so that a wait without a trace saves no registers for it. */
static __attribute__((noinline)) CUresult wait_and_tell(struct fence fence, uint64_t stream,
                                                        enum fence_wait_mode mode)
{
    uint64_t began = clock_ns();
    CUresult result = fence_wait(fence, stream, mode);

    if (result == CUDA_SUCCESS)
        client_range_send("waits for the device", began, clock_ns());
    return result;
}

CUresult fence_wait_traced(struct fence fence, uint64_t stream, enum fence_wait_mode mode)
{
    if (__builtin_expect(channel_traced(&client->channel), 0))
        return wait_and_tell(fence, stream, mode);
    return fence_wait(fence, stream, mode);
}

static bool is_of(const struct fence_word *word, uint64_t context)
{
    return word->context == context || word->primary == context;
}

/* One that has not passed: false when there is none. */
static bool find_orphan(uint64_t context, struct fence *ret_fence)
{
    _cleanup_deferring_mutex_ pthread_mutex_t *lock = deferring_mutex_hold(&fences.lock);

    for (uint32_t i = 0; i < fences.given_count; i++) {
        uint32_t word = fences.given[(fences.given_first + i) % client->fence_count];

        *ret_fence = (struct fence){word, fence_issued(word)};
        if (is_of(&fences.words[word], context) && !fence_passed(*ret_fence))
            return true;
    }
    return false;
}

CUresult fence_wait_orphans(uint64_t context)
{
    CUresult result = CUDA_SUCCESS;
    struct fence fence;

    while (result == CUDA_SUCCESS && find_orphan(context, &fence))
        result = fence_wait(fence, 0, FENCE_SPIN);
    return result;
}

bool fence_orphans_passed(void)
{
    _cleanup_deferring_mutex_ pthread_mutex_t *lock = deferring_mutex_hold(&fences.lock);

    for (uint32_t word = 0; word < fences.used; word++)
        if (!fences.words[word].used && !fence_word_idle(word))
            return false;
    return true;
}

bool fence_device_idle(int device)
{
    _cleanup_deferring_mutex_ pthread_mutex_t *lock = deferring_mutex_hold(&fences.lock);
    uint32_t used = atomic_load_explicit(&fences.used, memory_order_acquire);

    for (uint32_t word = 0; word < used; word++)
        if (fences.words[word].device == device && !fence_word_idle(word))
            return false;
    return true;
}

CUresult fence_wait_device(int device)
{
    uint32_t used = atomic_load_explicit(&fences.used, memory_order_acquire);

    for (uint32_t word = 0; word < used; word++) {
        struct fence fence = {word, fence_issued(word)};
        CUresult result;

        if (fences.words[word].device != device)
            continue;
        result = fence_wait(fence, 0, FENCE_SPIN);
        if (result != CUDA_SUCCESS)
            return result;
    }
    return CUDA_SUCCESS;
}
