/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of messages in shared memory, from one producer process to one consumer process.
 *
 * Message: struct ring_message, then payload; 16-byte aligned, size a multiple of 16, contiguous
 * (the data is mapped twice, back to back). The reasoning is at the top of ring.c. */
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "spin.h"

#define RING_ALIGNMENT 16u
#define RING_LINE 64u
#define RING_PREFETCHED_LINES 3u /* a launch with some parameters and its fence */

/* Every message begins with this. */
struct ring_message {
    uint32_t size; /* of the whole message, header included */
    uint32_t kind; /* the kind of the message: the ring never reads it */
};

/* The shared words, one cache line for each writer. Touched only by ring.c and the functions below.
 */
struct ring_shared {
    _Alignas(RING_LINE) _Atomic uint32_t tail;     /* producer: bytes ever published, modulo 2^32 */
    _Atomic uint32_t want_space;                   /* producer: sleeps on `head`; consumer clears */
    _Atomic uint32_t producer_cpu;                 /* producer: where it spins, by spin.h */
    _Alignas(RING_LINE) _Atomic uint32_t head;     /* consumer: bytes ever released, modulo 2^32 */
    _Atomic uint32_t seen;                         /* consumer: `tail` as it last read it */
    _Atomic uint32_t consumer_cpu;                 /* consumer: where it spins; 0 = it sleeps */
    _Alignas(RING_LINE) _Atomic uint32_t sleeping; /* consumer: sleeps here; either clears */
};

_Static_assert(sizeof(struct ring_shared) == 3 * RING_LINE, "one line for each writer");

/* One end. Private to its process: a peer cannot change it. */
struct ring {
    struct ring_shared *shared;
    unsigned char *data; /* `size` bytes, readable a second time right behind */
    uint32_t size;       /* power of two */
    /* Our own cursor: tail at the producer, head at the consumer. Other threads may read it. */
    _Atomic uint32_t cursor;
    uint32_t peer;           /* the other cursor as last seen */
    uint32_t pending;        /* consumer: size of the message that ring_next() gave out */
    uint32_t published;      /* consumer: `head` as last stored; behind the cursor during a burst */
    _Atomic uint32_t kicked; /* consumer: ring_kick() was called */
};

/* Maps `size` bytes (power of two, whole pages) at `offset` of `fd` twice, back to back:
 * 0 or -errno. ring_unmap() undoes it; NULL is allowed. */
int ring_map(int fd, uint64_t offset, uint32_t size, void **ret_data);
void ring_unmap(void *data, uint32_t size);

/* Makes the shared words those of an empty ring, before an end attaches. The cursors start shortly
 * below their wrap, so that every run crosses it. */
void ring_format(struct ring_shared *shared);

/* Attaches one end: `data` from ring_map(). Reads our own cursor once; from then on it is ours.
 * The consumer attaches before the producer gets the memory. */
void ring_init(struct ring *ring, struct ring_shared *shared, void *data, uint32_t size,
               bool producer);

/* Our own cursor, as ring_commit() or ring_release() has left it. Any thread may ask. */
static inline uint32_t ring_cursor(const struct ring *ring)
{
    return atomic_load_explicit(&ring->cursor, memory_order_relaxed);
}

/* Where the message at our cursor is. */
static inline unsigned char *ring_at_cursor(const struct ring *ring)
{
    return ring->data + (ring_cursor(ring) & (ring->size - 1));
}

/* ---- producer; callers take turns by a lock of their own ---- */

/* Free bytes as far as ring->peer tells; none when that makes no sense. */
static inline uint32_t ring_space(const struct ring *ring)
{
    uint32_t used = ring_cursor(ring) - ring->peer;
    return used <= ring->size ? ring->size - used : 0;
}

/* Reads how far the consumer is by now: whether there is space for so many bytes. */
bool ring_find_space(struct ring *ring, uint32_t size);

/* Space for a message of `size` bytes (multiple of 16, at most half of the ring). NULL when there
 * is no space now, or the shared words make no sense. Reserving again without a commit gives the
 * same place. */
static inline void *ring_reserve(struct ring *ring, uint32_t size)
{
    if (size > ring->size / 2 || (ring_space(ring) < size && !ring_find_space(ring, size)))
        return NULL;
    return ring_at_cursor(ring);
}

/* Publishes the bytes before it: partner load_tail(). Then loads `sleeping`: partner
 * set_sleeping(). */
static inline void ring_store_tail(struct ring_shared *shared, uint32_t tail)
{
    atomic_store_explicit(&shared->tail, tail, memory_order_seq_cst);
}

/* Wakes the consumer if it sleeps and no other thread has woken it. */
void ring_wake_consumer(struct ring *ring);

/* Publishes `size` bytes that were reserved: one message, or several side by side. Wakes the
 * consumer if it sleeps; the plain look keeps the line shared while the consumer is busy. */
static inline void ring_commit(struct ring *ring, uint32_t size)
{
    assert(size % RING_ALIGNMENT == 0 && size <= ring_space(ring));
    uint32_t tail = ring_cursor(ring) + size;

    atomic_store_explicit(&ring->cursor, tail, memory_order_relaxed);
    ring_store_tail(ring->shared, tail);
    if (atomic_load_explicit(&ring->shared->sleeping, memory_order_seq_cst) != 0)
        ring_wake_consumer(ring);
}

/* The consumer is gone: how many of the bytes published last it cannot have read. */
uint32_t ring_unread(const struct ring *ring);

/* From any thread, and only a hint: whether the consumer has taken all that was published. */
bool ring_is_drained(const struct ring *ring);

/* For a spin of the producer, which waits for the effect of its messages at the consumer. */
static inline struct spin_cpus ring_producer_cpus(struct ring_shared *shared)
{
    return (struct spin_cpus){&shared->producer_cpu, &shared->consumer_cpu};
}

/* Waits until ring_reserve(ring, size) succeeds: true; false once `alive` says so, which is asked
 * at least every 100 ms. Sleeps meanwhile. */
bool ring_wait_space(struct ring *ring, uint32_t size, bool (*alive)(void *context), void *context);

/* ---- consumer; one thread ---- */

/* Copies the next message into `buffer`: its size; 0 = none there; -EPROTO = the producer broke the
 * rules (and the ring stays where it is). In `buffer` the size word is the checked one. */
int ring_next(struct ring *ring, void *buffer, uint32_t capacity);

/* Gives the place of the message back to the producer, at the latest with the last of a burst. */
void ring_release(struct ring *ring);

/* Between two messages: ring_unread() is exact until the next ring_next(). */
void ring_make_exact(struct ring *ring);

/* Whether there is something for ring_next() to return. */
bool ring_has_message(const struct ring *ring);

/* Brings the start of the next message and the producer's cursor into this CPU's cache, while the
 * caller does something else. The producer's CPU has written both. */
static inline void ring_prefetch(const struct ring *ring)
{
    const unsigned char *message = ring_at_cursor(ring);

    __builtin_prefetch(&ring->shared->tail);
    for (unsigned line = 0; line < RING_PREFETCHED_LINES; line++)
        __builtin_prefetch(message + line * RING_LINE);
}

/* Waits until there is a message, ring_kick(), or `timeout_ns` (0 = no limit) is over: spins for
 * the usual budget, then sleeps. May return early; the caller calls ring_next() again. */
void ring_wait_message(struct ring *ring, uint64_t timeout_ns);

/* From any thread of the consumer's process: makes the current or the next ring_wait_message()
 * return. */
void ring_kick(struct ring *ring);
