/* SPDX-License-Identifier: Apache-2.0 */
/* The client's end of the control region. A thread that waits here, for space or for an answer,
 * also notices within 100 ms that the server is gone, and then returns. */
#include "channel.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "clock.h"
#include "cuda_error.h"
#include "deferred_signals.h"
#include "futex.h"
#include "shm.h"
#include "sock.h"

/* How often a thread that waits asks whether the server is still there. */
#define LIFE_SIGN_NS (20 * NS_PER_MS)
#define ALL_SLOTS UINT32_MAX

_Static_assert(REPLY_SLOTS == 32, "one bit of busy_slots for each");
_Static_assert(CHANNEL_MESSAGE_MAX <= REGION_RING_BYTES / 2, "every command fits the ring");

/* ---- opening ---- */

static bool plausible_size(size_t region_size, uint32_t ring_bytes)
{
    return ring_bytes >= 2 * CHANNEL_MESSAGE_MAX && (ring_bytes & (ring_bytes - 1)) == 0 &&
           region_size >= sizeof(struct region) + ring_bytes;
}

/* Both mappings, or none. */
static int map_region(struct channel *channel, int region_fd, uint32_t ring_bytes)
{
    void *region;
    int rc = shm_map(region_fd, sizeof(struct region), NULL, 0, &region);
    if (rc < 0)
        return rc;
    rc = ring_map(region_fd, sizeof(struct region), ring_bytes, &channel->ring_data);
    if (rc < 0) {
        shm_unmap(region, sizeof(struct region));
        return rc;
    }
    channel->region = region;
    return 0;
}

static void unmap_region(struct channel *channel)
{
    ring_unmap(channel->ring_data, channel->ring.size);
    shm_unmap(channel->region, sizeof(struct region));
    channel->region = NULL;
    channel->ring_data = NULL;
}

int channel_open(struct channel *channel, int region_fd, size_t region_size, uint32_t ring_bytes,
                 int socket)
{
    if (!plausible_size(region_size, ring_bytes) || shm_check(region_fd, region_size) < 0)
        return -EPROTO;
    *channel = (struct channel){.socket = socket};
    int rc = map_region(channel, region_fd, ring_bytes);
    if (rc < 0)
        return rc;
    ring_init(&channel->ring, &channel->region->ring, channel->ring_data, ring_bytes, true);
    if (channel->region->magic != REGION_MAGIC || channel->region->ring_bytes != ring_bytes) {
        unmap_region(channel);
        return -EPROTO;
    }
    return 0;
}

void channel_close(struct channel *channel)
{
    if (channel->region)
        unmap_region(channel);
}

/* ---- errors and life signs ---- */

CUresult channel_failure(const struct channel *channel)
{
    CUresult error = channel_error(channel);
    return error != CUDA_SUCCESS ? error : CUDA_ERROR_MPS_RPC_FAILURE;
}

CUresult channel_take_deferred_error(struct channel *channel)
{
    _Atomic uint32_t *word = &channel->region->deferred_error;
    if (atomic_load_explicit(word, memory_order_acquire) == 0)
        return CUDA_SUCCESS;
    return (CUresult)atomic_exchange_explicit(word, 0, memory_order_acq_rel);
}

bool channel_alive(struct channel *channel)
{
    if (atomic_load_explicit(&channel->gone, memory_order_relaxed))
        return false;
    if (!sock_hung_up(channel->socket))
        return true;
    atomic_store_explicit(&channel->gone, 1, memory_order_relaxed);
    return false;
}

void channel_mend(struct channel *channel)
{
    atomic_store_explicit(&channel->broken, 0, memory_order_relaxed);
}

void channel_break(struct channel *channel)
{
    atomic_store_explicit(&channel->broken, 1, memory_order_relaxed);
}

/* Whether it makes sense to go on waiting for the server. */
static bool usable(void *context)
{
    struct channel *channel = context;
    return channel_alive(channel) && channel_error(channel) == CUDA_SUCCESS;
}

/* Waits until the client has moved to another server, or is known to be lost. */
static bool revive(struct channel *channel)
{
    return channel->revive && channel->revive();
}

/* The same for callers that may wait for another server as well. */
static bool usable_again(struct channel *channel)
{
    return usable(channel) || revive(channel);
}

/* ---- commands ---- */

void channel_lock(struct channel *channel)
{
    signals_defer();
    lock_take(&channel->lock);
}

void channel_unlock(struct channel *channel)
{
    lock_give(&channel->lock);
    signals_restore();
}

static uint32_t whole_size(uint32_t size)
{
    return (size + RING_ALIGNMENT - 1) & ~(RING_ALIGNMENT - 1);
}

/* Space comes when kernels have ended, so never behind one that does not. */
static bool usable_meanwhile(void *context)
{
    signals_admit_without_handler();
    return usable(context);
}

/* NULL = the server is gone. While there is space, even then a message is written: it is unread,
 * and what is unread moves to another server with the client. */
static struct ring_message *wait_for_space(struct channel *channel, uint32_t whole)
{
    struct ring_message *message = ring_reserve(&channel->ring, whole);
    if (message || !ring_wait_space(&channel->ring, whole, usable_meanwhile, channel))
        return message;
    return ring_reserve(&channel->ring, whole);
}

struct ring_message *channel_reserve(struct channel *channel, uint32_t size)
{
    if (size < sizeof(struct ring_message) || size > CHANNEL_MESSAGE_MAX)
        return NULL;
    uint32_t whole = whole_size(size);
    void (*observer)(struct channel *) =
        atomic_load_explicit(&channel->before_command, memory_order_relaxed);
    if (__builtin_expect(observer != NULL, 0))
        observer(channel);
    struct ring_message *message = wait_for_space(channel, whole);
    if (!message) {
        channel_break(channel);
        return NULL;
    }
    memset((unsigned char *)message + whole - RING_ALIGNMENT, 0, RING_ALIGNMENT);
    message->size = whole;
    channel->reserved = whole;
    return message;
}

void channel_commit(struct channel *channel)
{
    const struct ring_message *message = (const void *)ring_at_cursor(&channel->ring);
    uint32_t op = channel_kind_op(message->kind) % CHANNEL_OPS;
    int slot = channel_kind_slot(message->kind);
    channel->used[op / 64] |= UINT64_C(1) << op % 64;
    if (slot != CHANNEL_NO_SLOT)
        channel->asked_at[slot % REPLY_SLOTS] = channel->sent;
    channel->sent += channel->reserved;
    ring_commit(&channel->ring, channel->reserved);
    channel->reserved = 0;
}

void channel_forget_call(struct channel *channel, uint32_t op)
{
    channel_lock(channel);
    channel->used[op / 64] &= ~(UINT64_C(1) << op % 64);
    channel_unlock(channel);
}

/* ---- answers ---- */

/* A free slot, now taken; CHANNEL_NO_SLOT = none free. */
static int take_slot(struct channel *channel)
{
    uint32_t busy = atomic_load_explicit(&channel->busy_slots, memory_order_relaxed);
    while (busy != ALL_SLOTS) {
        int slot = __builtin_ctz(~busy);
        /* Acquire: the slot's former user is done with it. Partner channel_reply_end(). */
        if (atomic_compare_exchange_weak_explicit(&channel->busy_slots, &busy, busy | 1u << slot,
                                                  memory_order_acquire, memory_order_relaxed))
            return slot;
    }
    return CHANNEL_NO_SLOT;
}

int channel_reply_begin(struct channel *channel)
{
    int slot;
    /* Another thread may have found this since the call began, and be about to move the client. */
    if (channel_error(channel) != CUDA_SUCCESS && !revive(channel)) {
        channel_break(channel);
        return CHANNEL_NO_SLOT;
    }
    while ((slot = take_slot(channel)) == CHANNEL_NO_SLOT) {
        futex_wait(&channel->busy_slots, ALL_SLOTS, LIFE_SIGN_NS);
        if (!usable_again(channel)) {
            channel_break(channel);
            return CHANNEL_NO_SLOT;
        }
    }
    channel->asked_at[slot] = CHANNEL_NOT_SENT;
    atomic_store_explicit(&channel->region->slots[slot].state, REPLY_WAITING, memory_order_relaxed);
    return slot;
}

/* Makes status and data readable: partner channel_server_reply(). */
static bool answered(const struct reply_slot *slot)
{
    return atomic_load_explicit(&slot->state, memory_order_acquire) == REPLY_DONE;
}

static void sleep_for_answer(struct reply_slot *slot)
{
    uint32_t state = REPLY_WAITING;
    bool sleeping = atomic_compare_exchange_strong_explicit(
        &slot->state, &state, REPLY_SLEEPING, memory_order_relaxed, memory_order_relaxed);
    if (sleeping || state == REPLY_SLEEPING)
        futex_wait(&slot->state, REPLY_SLEEPING, LIFE_SIGN_NS);
}

struct spin channel_spin_begin(const struct channel *channel, uint64_t yielding_ns)
{
    const struct channel_load load = channel_load(channel);

    spin_limit(load.spin_ns);
    struct spin spin = spin_begin_yielding(yielding_ns);
    if (load.spin_ns)
        spin.yielding = load.yield_ns < yielding_ns ? load.yield_ns : yielding_ns;
    spin.cpus = ring_producer_cpus(&channel->region->ring);
    return spin;
}

/* False = there will be none. An answer that came before the end still counts. */
static bool wait_for_answer(struct channel *channel, struct reply_slot *slot)
{
    struct spin spin = channel_spin_begin(channel, 0);
    while (!answered(slot)) {
        if (spin_more(&spin))
            continue;
        sleep_for_answer(slot);
        if (!answered(slot) && !usable_again(channel))
            return answered(slot);
    }
    return true;
}

CUresult channel_reply_wait(struct channel *channel, int slot, const void **ret_data,
                            uint32_t *ret_size)
{
    struct reply_slot *reply = &channel->region->slots[slot];
    if (!wait_for_answer(channel, reply)) {
        channel_break(channel);
        return channel_error(channel);
    }
    /* Each is read once: a server may change them meanwhile. */
    uint32_t size = *(volatile uint32_t *)&reply->size;
    CUresult status = (CUresult) * (volatile int32_t *)&reply->status;
    *ret_data = reply->data;
    *ret_size = size <= REPLY_DATA_MAX ? size : REPLY_DATA_MAX;
    if (cuda_error_is_fatal(status))
        channel_break(channel);
    return status;
}

void channel_reply_end(struct channel *channel, int slot)
{
    if (slot == CHANNEL_NO_SLOT)
        return;
    atomic_store_explicit(&channel->region->slots[slot].state, REPLY_FREE, memory_order_relaxed);
    uint32_t bit = 1u << slot;
    uint32_t before = atomic_fetch_and_explicit(&channel->busy_slots, ~bit, memory_order_release);
    if (before == ALL_SLOTS)
        futex_wake(&channel->busy_slots, 1);
}

/* ---- after the server's death ---- */

/* The bytes that the client sent so many bytes ago. */
static const unsigned char *sent_before(const struct ring *ring, uint32_t bytes)
{
    return ring->data + ((ring_cursor(ring) - bytes) & (ring->size - 1));
}

uint32_t channel_unread(const struct channel *channel, const unsigned char **ret_messages)
{
    uint32_t unread = ring_unread(&channel->ring);
    *ret_messages = sent_before(&channel->ring, unread);
    return unread;
}

const void *channel_asked(const struct channel *channel, int slot, struct ring_message *ret_header)
{
    uint64_t at = channel->asked_at[slot], behind = channel->sent - at;
    if (at == CHANNEL_NOT_SENT || behind > channel->ring.size)
        return NULL;
    const void *message = sent_before(&channel->ring, (uint32_t)behind);
    memcpy(ret_header, message, sizeof(*ret_header));
    bool sound = ret_header->size >= sizeof(*ret_header) && ret_header->size <= behind &&
                 channel_kind_slot(ret_header->kind) == slot;
    return sound ? message : NULL;
}

/* The waiters read the same words again. */
static void keep_waiting(const struct region *from, struct region *to)
{
    for (uint32_t slot = 0; slot < REPLY_SLOTS; slot++)
        to->slots[slot].state = from->slots[slot].state == REPLY_FREE ? REPLY_FREE : REPLY_WAITING;
}

static int replace_mapping(void *address, size_t size, int fd, off_t offset)
{
    void *mapped = mmap(address, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, offset);
    return mapped == MAP_FAILED ? -errno : 0;
}

static int replace_mappings(struct channel *channel, int fd)
{
    unsigned char *data = channel->ring_data;
    size_t ring_bytes = channel->ring.size;
    off_t offset = sizeof(struct region);
    int rc = replace_mapping(data, ring_bytes, fd, offset);
    if (rc == 0)
        rc = replace_mapping(data + ring_bytes, ring_bytes, fd, offset);
    return rc == 0 ? replace_mapping(channel->region, sizeof(struct region), fd, 0) : rc;
}

int channel_reopen(struct channel *channel, int region_fd, size_t region_size, uint32_t ring_bytes)
{
    void *mapped;
    if (ring_bytes != channel->ring.size || !plausible_size(region_size, ring_bytes) ||
        shm_check(region_fd, region_size) < 0)
        return -EPROTO;
    int rc = shm_map(region_fd, sizeof(struct region), NULL, 0, &mapped);
    if (rc < 0)
        return rc;
    struct region *region = mapped;
    bool sound = region->magic == REGION_MAGIC && region->ring_bytes == ring_bytes;
    if (sound)
        keep_waiting(channel->region, region);
    shm_unmap(region, sizeof(*region));
    rc = sound ? replace_mappings(channel, region_fd) : -EPROTO;
    if (rc < 0)
        return rc;
    ring_init(&channel->ring, &channel->region->ring, channel->ring_data, ring_bytes, true);
    memset(channel->output_head, 0, sizeof(channel->output_head));
    atomic_store_explicit(&channel->before_command, NULL, memory_order_relaxed);
    atomic_store_explicit(&channel->output_seen, 0, memory_order_relaxed);
    atomic_store_explicit(&channel->gone, 0, memory_order_release);
    return 0;
}

void channel_answer(struct channel *channel, uint32_t slots, CUresult status)
{
    for (uint32_t slot = 0; slot < REPLY_SLOTS; slot++) {
        struct reply_slot *reply = &channel->region->slots[slot];
        if (!(slots >> slot & 1))
            continue;
        reply->status = (int32_t)status;
        reply->size = 0;
        atomic_store_explicit(&reply->state, REPLY_DONE, memory_order_release);
    }
}

int channel_send_again(struct channel *channel, const unsigned char *messages, uint32_t size)
{
    while (size > 0) {
        struct ring_message header;
        memcpy(&header, messages, sizeof(header));
        struct ring_message *message = channel_reserve(channel, header.size);
        if (!message)
            return -EPIPE;
        memcpy(message, messages, header.size);
        channel_commit(channel);
        messages += header.size;
        size -= header.size;
    }
    return 0;
}

void channel_give_up(struct channel *channel, CUresult error)
{
    atomic_store_explicit(&channel->region->sticky_error, (uint32_t)error, memory_order_release);
}

void channel_defer_error(struct channel *channel, CUresult error)
{
    atomic_store_explicit(&channel->region->deferred_error, (uint32_t)error, memory_order_release);
}

/* ---- device output ---- */

void channel_mark_output_seen(struct channel *channel)
{
    uint32_t count =
        atomic_load_explicit(&channel->region->output_notifications, memory_order_acquire);

    atomic_store_explicit(&channel->output_seen, count, memory_order_relaxed);
}

size_t channel_take_output(struct channel *channel, enum region_output kind, char *ret_bytes,
                           size_t size)
{
    return output_area_take(&channel->region->output[kind], &channel->output_head[kind], ret_bytes,
                            size);
}
