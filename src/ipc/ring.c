/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of messages in shared memory, from one producer to one consumer.
 *
 *         head                     tail                    The data, mapped twice back to back: a
 *          |                        |                      message that begins near the end of the
 *     .....|msg|message     |msg    |.......|.....|msg|m   first copy goes on in the second, so it
 *     `------------- size -----------------'`---------     is contiguous for both ends.
 *
 * Words, and their writers:
 *     tail        the producer: bytes published since the beginning, modulo 2^32
 *     head        the consumer: bytes released since the beginning, modulo 2^32
 *     seen        the consumer, before it reads a message: how far it knows that there are some;
 *                 nothing behind that has been read, as a producer knows whose consumer has died
 *     sleeping    the consumer sets it before it sleeps on this very word; either side clears it
 *     want_space  the producer sets it before it sleeps on `head`; the consumer clears it
 *     producer_cpu, consumer_cpu
 *                 where each of them spins, so that one that is on the same CPU makes way: hints
 *
 * Each side keeps its own cursor in private memory (ring->cursor) and only copies it out.
 *
 * Invariant: 0 <= tail - head <= size, both taken modulo 2^32. The producer publishes only what
 * fits behind the head that it has seen, and the real head can only be further on. The consumer
 * releases only what it has seen published.
 *
 * Wrap: `size` is a power of two that divides 2^32, so cursor & (size - 1) goes on without a jump
 * when a cursor wraps. And tail - head in 32-bit arithmetic is the true distance, because that is
 * at most size < 2^32. A full ring (tail - head == size) differs from an empty one (== 0), so no
 * byte is wasted. Both cursors start at RING_START (ring_format()), so the wrap comes early in
 * every run.
 *
 * Order: message bytes are written before `tail` is stored with release; the consumer loads `tail`
 * with acquire before it reads them. The consumer is done with the bytes before it stores `head`
 * with release; the producer loads `head` with acquire before it writes there again.
 *
 * No wake-up is lost: each side stores one word and then loads the other's, all four accesses
 * sequentially consistent:
 *     producer   tail := new;   if (sleeping) wake    |  want_space := 1; if (no space) sleep
 *     consumer   sleeping := 1; if (no message) sleep |  head := new;     if (want_space) wake
 * There is one total order. Either the first side's load comes after the second side's store, and
 * it wakes. Or the second side's load comes after the first side's store, and it does not sleep.
 * The sleep itself is a futex that compares the word again. The consumer wakes a producer only once
 * half of the ring is free, so a producer that outruns it does not ping-pong. No message is longer
 * than half of the ring, so half always suffices. A producer that saw no space for it saw more than
 * half in use. So the release that crosses the half comes later and sees want_space. The consumer
 * stores `head` only after an eighth of the ring, or when it has read all that it saw published. So
 * in a burst neither side waits for the other's cache line. When it goes to sleep, all is released.
 *
 * A hostile producer may write any byte of the shared memory at any time. The consumer uses of it:
 *     tail        only as tail - cursor, which must be a multiple of 16 up to `size`, else -EPROTO;
 *     a message   its size word is read once; it must be a multiple of 16, at least 16, at most the
 *                 buffer and at most tail - cursor, else -EPROTO. Then that many bytes are copied,
 *                 and the copy's size word is overwritten with the checked size. The bytes may be
 *                 garbage or change under the copy; the copy is private and its reader checks it;
 *     head, seen  never read back;
 *     sleeping    a lie makes the consumer sleep up to SLEEP_SLICE_NS too long, or not at all: it
 *                 serves the liar late, or spends time that a flood of messages would cost as well;
 *     want_space  a lie costs one futex wake a release;
 *     producer_cpu  a lie makes the consumer yield the core while it waits for the liar;
 *     consumer_cpu  never read back.
 * So a hostile producer gets -EPROTO, bad service, or neither; never an access out of bounds. One
 * that dies in the middle of a message has not published it, and nothing is seen of it.
 */
#include "ring.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clock.h"
#include "futex.h"
#include "spin.h"

#define RING_START 0xfffff000u /* one page of messages before the cursors wrap */
#define RING_SIZE_MAX (1u << 30)
#define SLEEP_SLICE_NS (1 * NS_PER_SEC)  /* how long a hostile producer can hide a kick */
#define SPACE_SLICE_NS (100 * NS_PER_MS) /* how often a waiting producer asks for life signs */
#define PREFETCH_LINES 3u                /* a launch with a few parameters */
#define YIELDING_NS (500 * NS_PER_US)    /* a program that synchronizes is back within this */

/* ---- the shared words: one accessor, one access, one partner ---- */

/* Consumer. Makes the bytes before `tail` readable: partner ring_store_tail(). */
static uint32_t load_tail(const struct ring_shared *shared)
{
    return atomic_load_explicit(&shared->tail, memory_order_seq_cst);
}

/* Consumer. Its reads of the message are over: partner load_head(). Then loads `want_space`:
 * partner set_want_space(). */
static void store_head(struct ring_shared *shared, uint32_t head)
{
    atomic_store_explicit(&shared->head, head, memory_order_seq_cst);
}

/* Producer. Makes the bytes before `head` writable again: partner store_head(). */
static uint32_t load_head(const struct ring_shared *shared)
{
    return atomic_load_explicit(&shared->head, memory_order_seq_cst);
}

/* Consumer, before it looks at `tail` for the last time: partner ring_wake_consumer(). */
static void set_sleeping(struct ring_shared *shared, uint32_t value)
{
    atomic_store_explicit(&shared->sleeping, value, memory_order_seq_cst);
}

/* Consumer, before it reads the bytes that it has just seen: partner load_seen(), after its death.
 */
static void store_seen(struct ring_shared *shared, uint32_t tail)
{
    atomic_store_explicit(&shared->seen, tail, memory_order_release);
}

/* Producer. Partner store_seen(). */
static uint32_t load_seen(const struct ring_shared *shared)
{
    return atomic_load_explicit(&shared->seen, memory_order_acquire);
}

/* Producer, before it looks at `head` for the last time: partner take_want_space(). */
static void set_want_space(struct ring_shared *shared)
{
    atomic_store_explicit(&shared->want_space, 1, memory_order_seq_cst);
}

/* Consumer. Whether the producer sleeps; if so it is now ours to wake: partner set_want_space(). */
static bool take_want_space(struct ring_shared *shared)
{
    return atomic_load_explicit(&shared->want_space, memory_order_seq_cst) != 0 &&
           atomic_exchange_explicit(&shared->want_space, 0, memory_order_seq_cst) != 0;
}

/* ---- making and attaching ---- */

static bool valid_size(uint32_t size)
{
    return size <= RING_SIZE_MAX && size >= (uint32_t)getpagesize() && (size & (size - 1)) == 0;
}

static bool map_copy(int fd, uint64_t offset, uint32_t size, void *address)
{
    return mmap(address, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)offset) !=
           MAP_FAILED;
}

int ring_map(int fd, uint64_t offset, uint32_t size, void **ret_data)
{
    if (!valid_size(size))
        return -EINVAL;
    size_t both = (size_t)size * 2;
    unsigned char *data = mmap(NULL, both, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        return -errno;
    if (!map_copy(fd, offset, size, data) || !map_copy(fd, offset, size, data + size)) {
        int rc = -errno;
        munmap(data, both);
        return rc;
    }
    *ret_data = data;
    return 0;
}

void ring_unmap(void *data, uint32_t size)
{
    if (data)
        munmap(data, (size_t)size * 2);
}

void ring_format(struct ring_shared *shared)
{
    memset(shared, 0, sizeof(*shared));
    shared->tail = RING_START;
    shared->head = RING_START;
    shared->seen = RING_START;
}

void ring_init(struct ring *ring, struct ring_shared *shared, void *data, uint32_t size,
               bool producer)
{
    assert(valid_size(size));
    uint32_t tail = load_tail(shared), head = load_head(shared);
    *ring = (struct ring){
        .shared = shared,
        .data = data,
        .size = size,
        .cursor = producer ? tail : head,
        .published = head,
        .peer = producer ? head : tail,
    };
}

/* ---- producer ---- */

bool ring_find_space(struct ring *ring, uint32_t size)
{
    ring->peer = load_head(ring->shared);
    return ring_space(ring) >= size;
}

/* If it sleeps it is now ours to wake: partner set_sleeping(). */
void ring_wake_consumer(struct ring *ring)
{
    if (atomic_exchange_explicit(&ring->shared->sleeping, 0, memory_order_seq_cst) != 0)
        futex_wake(&ring->shared->sleeping, 1);
}

static void sleep_for_space(struct ring *ring, uint32_t size)
{
    set_want_space(ring->shared);
    if (!ring_reserve(ring, size)) /* which has loaded ring->peer from `head` */
        futex_wait(&ring->shared->head, ring->peer, SPACE_SLICE_NS);
}

/* Without a spin. Space comes by the eighth of a ring, and the half that is still full then has
 * work for as long as a wake-up takes. */
bool ring_wait_space(struct ring *ring, uint32_t size, bool (*alive)(void *context), void *context)
{
    if (size > ring->size / 2)
        return false;
    while (!ring_reserve(ring, size)) {
        if (!alive(context))
            return false;
        sleep_for_space(ring, size);
    }
    return true;
}

uint32_t ring_unread(const struct ring *ring)
{
    uint32_t unread = ring_cursor(ring) - load_seen(ring->shared);
    return unread <= ring->size ? unread : 0;
}

bool ring_is_drained(const struct ring *ring)
{
    return load_head(ring->shared) == load_tail(ring->shared);
}

/* ---- consumer ---- */

/* Bytes published and not yet read: 0 .. size, or -EPROTO. The producer's line is looked at only
 * when what was seen of it before is used up: during a burst it stays with the producer. */
static int64_t available(struct ring *ring)
{
    if (ring->peer == ring_cursor(ring)) {
        uint32_t tail = load_tail(ring->shared), bytes = tail - ring_cursor(ring);
        if (bytes > ring->size || bytes % RING_ALIGNMENT != 0)
            return -EPROTO;
        if (tail != ring->peer)
            store_seen(ring->shared, tail);
        ring->peer = tail;
    }
    return ring->peer - ring_cursor(ring);
}

static bool plausible(uint32_t size, uint32_t capacity, int64_t bytes)
{
    return size >= RING_ALIGNMENT && size % RING_ALIGNMENT == 0 && size <= capacity &&
           size <= bytes;
}

int ring_next(struct ring *ring, void *buffer, uint32_t capacity)
{
    int64_t bytes = available(ring);
    if (bytes <= 0)
        return (int)bytes;
    const struct ring_message *message = (const void *)ring_at_cursor(ring);
    uint32_t size = atomic_load_explicit((const _Atomic uint32_t *)&message->size,
                                         memory_order_relaxed); /* once: it may change */
    if (!plausible(size, capacity, bytes))
        return -EPROTO;
    memcpy(buffer, message, size);
    ((struct ring_message *)buffer)->size = size;
    ring->pending = size;
    return (int)size;
}

/* The lines of the message that comes next travel while the caller works on this one. */
static void prefetch_next(const struct ring *ring)
{
    const unsigned char *next = ring_at_cursor(ring);
    for (unsigned line = 0; line < PREFETCH_LINES; line++)
        __builtin_prefetch(next + line * RING_LINE);
}

static void publish_head(struct ring *ring)
{
    ring->published = ring_cursor(ring);
    store_head(ring->shared, ring_cursor(ring));
    if (ring->peer - ring_cursor(ring) <= ring->size / 2 && take_want_space(ring->shared))
        futex_wake(&ring->shared->head, 1);
}

void ring_release(struct ring *ring)
{
    uint32_t cursor = ring_cursor(ring) + ring->pending;

    /* Partner: ring_cursor() in channel_server_queued(). */
    atomic_store_explicit(&ring->cursor, cursor, memory_order_relaxed);
    ring->pending = 0;
    if (cursor == ring->peer || cursor - ring->published >= ring->size / 8)
        publish_head(ring);
    else
        prefetch_next(ring);
}

void ring_make_exact(struct ring *ring)
{
    ring->peer = ring_cursor(ring);
    store_seen(ring->shared, ring_cursor(ring));
    publish_head(ring);
}

/* Partner ring_kick(). */
static bool kicked(const struct ring *ring)
{
    return atomic_load_explicit(&ring->kicked, memory_order_seq_cst) != 0;
}

bool ring_has_message(const struct ring *ring)
{
    return load_tail(ring->shared) != ring_cursor(ring);
}

/* Whether the consumer has a reason to be awake. */
static bool ready(const struct ring *ring)
{
    return ring_has_message(ring) || kicked(ring);
}

static void sleep_for_message(struct ring *ring, uint64_t timeout_ns)
{
    bool short_timeout = timeout_ns != 0 && timeout_ns < SLEEP_SLICE_NS;
    atomic_store_explicit(&ring->shared->consumer_cpu, 0, memory_order_relaxed);
    set_sleeping(ring->shared, 1);
    if (!ready(ring))
        futex_wait(&ring->shared->sleeping, 1, short_timeout ? timeout_ns : SLEEP_SLICE_NS);
    set_sleeping(ring->shared, 0);
}

void ring_wait_message(struct ring *ring, uint64_t timeout_ns)
{
    struct spin spin = spin_begin_yielding(YIELDING_NS);
    spin.cpus = (struct spin_cpus){&ring->shared->consumer_cpu, &ring->shared->producer_cpu};
    while (!ready(ring) && spin_more(&spin))
        ;
    if (!ready(ring))
        sleep_for_message(ring, timeout_ns);
    if (kicked(ring))
        atomic_store_explicit(&ring->kicked, 0, memory_order_seq_cst);
}

/* Partner kicked(). Wakes in any case: the peer may have written `sleeping`. */
void ring_kick(struct ring *ring)
{
    atomic_store_explicit(&ring->kicked, 1, memory_order_seq_cst);
    set_sleeping(ring->shared, 0);
    futex_wake(&ring->shared->sleeping, 1);
}
