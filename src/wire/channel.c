/* SPDX-License-Identifier: Apache-2.0 */
/* The client's end of the control region. The one idea: whoever waits here, for room or for an
 * answer, also notices within 100 ms that the server is gone, and then returns. */
#include "channel.h"

#include <errno.h>
#include <string.h>

#include "clock.h"
#include "futex.h"
#include "shm.h"
#include "sock.h"
#include "spin.h"

#define LIFE_SIGN_NS (100 * NS_PER_MS)
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
    pthread_mutex_init(&channel->lock, NULL);
    return 0;
}

void channel_close(struct channel *channel)
{
    if (!channel->region)
        return;
    unmap_region(channel);
    pthread_mutex_destroy(&channel->lock);
}

/* ---- errors and life signs ---- */

CUresult channel_error(const struct channel *channel)
{
    uint32_t sticky = __atomic_load_n(&channel->region->sticky_error, __ATOMIC_ACQUIRE);
    if (sticky)
        return (CUresult)sticky;
    bool gone = __atomic_load_n(&channel->gone, __ATOMIC_RELAXED) != 0;
    return gone ? CUDA_ERROR_MPS_RPC_FAILURE : CUDA_SUCCESS;
}

CUresult channel_failure(const struct channel *channel)
{
    CUresult error = channel_error(channel);
    return error != CUDA_SUCCESS ? error : CUDA_ERROR_MPS_RPC_FAILURE;
}

CUresult channel_take_deferred_error(struct channel *channel)
{
    uint32_t *word = &channel->region->deferred_error;
    if (__atomic_load_n(word, __ATOMIC_ACQUIRE) == 0)
        return CUDA_SUCCESS;
    return (CUresult)__atomic_exchange_n(word, 0, __ATOMIC_ACQ_REL);
}

bool channel_alive(struct channel *channel)
{
    if (__atomic_load_n(&channel->gone, __ATOMIC_RELAXED))
        return false;
    if (!sock_hung_up(channel->socket))
        return true;
    __atomic_store_n(&channel->gone, 1, __ATOMIC_RELAXED);
    return false;
}

/* Whether it makes sense to go on waiting for the server. */
static bool usable(void *context)
{
    struct channel *channel = context;
    return channel_alive(channel) && channel_error(channel) == CUDA_SUCCESS;
}

/* ---- commands ---- */

void channel_lock(struct channel *channel)
{
    pthread_mutex_lock(&channel->lock);
}

void channel_unlock(struct channel *channel)
{
    pthread_mutex_unlock(&channel->lock);
}

static uint32_t whole_size(uint32_t size)
{
    return (size + RING_ALIGNMENT - 1) & ~(RING_ALIGNMENT - 1);
}

struct ring_message *channel_reserve(struct channel *channel, uint32_t size)
{
    if (size < sizeof(struct ring_message) || size > CHANNEL_MESSAGE_MAX)
        return NULL;
    if (__atomic_load_n(&channel->gone, __ATOMIC_RELAXED))
        return NULL;
    uint32_t whole = whole_size(size);
    struct ring_message *message = ring_reserve(&channel->ring, whole);
    if (!message) {
        if (!ring_wait_space(&channel->ring, whole, usable, channel))
            return NULL;
        message = ring_reserve(&channel->ring, whole);
    }
    memset((unsigned char *)message + whole - RING_ALIGNMENT, 0, RING_ALIGNMENT);
    message->size = whole;
    channel->reserved = whole;
    return message;
}

void channel_commit(struct channel *channel)
{
    ring_commit(&channel->ring, channel->reserved);
    channel->reserved = 0;
}

/* ---- answers ---- */

/* A free slot, now taken; CHANNEL_NO_SLOT = none free. */
static int take_slot(struct channel *channel)
{
    uint32_t busy = __atomic_load_n(&channel->busy_slots, __ATOMIC_RELAXED);
    while (busy != ALL_SLOTS) {
        int slot = __builtin_ctz(~busy);
        /* Acquire: the slot's former user is done with it. Partner channel_reply_end(). */
        if (__atomic_compare_exchange_n(&channel->busy_slots, &busy, busy | 1u << slot, true,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return slot;
    }
    return CHANNEL_NO_SLOT;
}

int channel_reply_begin(struct channel *channel)
{
    int slot;
    if (channel_error(channel) != CUDA_SUCCESS)
        return CHANNEL_NO_SLOT;
    while ((slot = take_slot(channel)) == CHANNEL_NO_SLOT) {
        futex_wait(&channel->busy_slots, ALL_SLOTS, LIFE_SIGN_NS);
        if (!usable(channel))
            return CHANNEL_NO_SLOT;
    }
    __atomic_store_n(&channel->region->slots[slot].state, REPLY_WAITING, __ATOMIC_RELAXED);
    return slot;
}

/* Makes status and data readable: partner channel_server_reply(). */
static bool answered(const struct reply_slot *slot)
{
    return __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) == REPLY_DONE;
}

static void sleep_for_answer(struct reply_slot *slot)
{
    uint32_t state = REPLY_WAITING;
    bool sleeping = __atomic_compare_exchange_n(&slot->state, &state, REPLY_SLEEPING, false,
                                                __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    if (sleeping || state == REPLY_SLEEPING)
        futex_wait(&slot->state, REPLY_SLEEPING, LIFE_SIGN_NS);
}

/* False = there will be none. An answer that came before the end still counts. */
static bool wait_for_answer(struct channel *channel, struct reply_slot *slot)
{
    struct spin spin = spin_begin();
    while (!answered(slot)) {
        if (spin_more(&spin))
            continue;
        sleep_for_answer(slot);
        if (!answered(slot) && !usable(channel))
            return answered(slot);
    }
    return true;
}

CUresult channel_reply_wait(struct channel *channel, int slot, const void **ret_data,
                            uint32_t *ret_size)
{
    struct reply_slot *reply = &channel->region->slots[slot];
    if (!wait_for_answer(channel, reply))
        return channel_error(channel);
    *ret_data = reply->data;
    *ret_size = reply->size <= REPLY_DATA_MAX ? reply->size : REPLY_DATA_MAX;
    return (CUresult)reply->status;
}

void channel_reply_end(struct channel *channel, int slot)
{
    if (slot == CHANNEL_NO_SLOT)
        return;
    __atomic_store_n(&channel->region->slots[slot].state, REPLY_FREE, __ATOMIC_RELAXED);
    uint32_t bit = 1u << slot;
    uint32_t before = __atomic_fetch_and(&channel->busy_slots, ~bit, __ATOMIC_RELEASE);
    if (before == ALL_SLOTS)
        futex_wake(&channel->busy_slots, 1);
}

/* ---- text ---- */

void channel_see_text(struct channel *channel)
{
    uint32_t news = __atomic_load_n(&channel->region->text_news, __ATOMIC_ACQUIRE);

    __atomic_store_n(&channel->text_seen, news, __ATOMIC_RELAXED);
}

size_t channel_take_text(struct channel *channel, enum region_text kind, char *ret_text,
                         size_t size)
{
    return text_area_take(&channel->region->text[kind], &channel->text_head[kind], ret_text, size);
}
