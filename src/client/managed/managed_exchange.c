/* SPDX-License-Identifier: Apache-2.0 */
#include "managed_exchange.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cleanup.h"
#include "client.h"
#include "client_log.h"
#include "fd.h"
#include "granule.h"
#include "ranges.h"
#include "wire_calls.h"

/* At most so many chunks leave the device for one that comes in. */
#define MOST_OUT 64u

/* At most so many chunks are noted of one launch. */
#define MOST_USED 64u

/* How long a move waits for the end of the client's work, and for how many uses none is tried after
 * a longer wait. */
#define WAIT_NS 1000000000ull
#define PAUSE_USES 1000u

/* Device memory is taken in multiples of so many bytes. */
#define GRANULARITY (UINT64_C(2) << 20)

struct chunk {
    struct exchange_chunk about;
    int fd;            /* of its memory, which it keeps alive; or -1 */
    uint64_t noted;    /* the use that it was noted for last */
    uint64_t releases; /* freed so far, when the capacity was too small */
    bool had_no_capacity;
};

static struct {
    pthread_mutex_t lock;       /* taken while chunks move */
    struct ranges chunks;       /* struct chunk */
    _Atomic unsigned out_count; /* atomic: changed with the lock, read without */
    uint64_t now;               /* counts uses */
    uint64_t paused_until;
    bool told, impossible;
} exchange;

void exchange_init(void)
{
    memset(&exchange, 0, sizeof(exchange));
    pthread_mutex_init(&exchange.lock, NULL);
}

/* The partner of count_out(). */
static bool any_is_out(void)
{
    return atomic_load_explicit(&exchange.out_count, memory_order_acquire) != 0;
}

/* With the lock; read by any_is_out(). */
static void count_out(const struct chunk *chunk, int by)
{
    if (chunk->about.out)
        atomic_fetch_add_explicit(&exchange.out_count, (unsigned)by, memory_order_release);
}

static struct chunk *chunk_at_locked(uint64_t address)
{
    const struct range *range = ranges_find(&exchange.chunks, address);

    return range ? range->value : NULL;
}

bool exchange_enter(const struct exchange_chunk *about, int fd)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&exchange.lock);
    struct chunk *chunk = calloc(1, sizeof(*chunk));

    if (!chunk)
        return false;
    chunk->about = *about;
    chunk->fd = fd;
    if (ranges_add(&exchange.chunks, about->address, about->size, chunk)) {
        free(chunk);
        return false;
    }
    count_out(chunk, 1);
    return true;
}

uint64_t exchange_leave(uint64_t address, int *ret_fd)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&exchange.lock);
    struct chunk *chunk;
    struct range removed;

    ranges_remove(&exchange.chunks, address, &removed);
    chunk = removed.value;
    count_out(chunk, -1);
    *ret_fd = chunk->fd;
    free(chunk);
    return removed.size;
}

void exchange_look(uint64_t address, struct exchange_chunk *ret_chunk, int *ret_fd)
{
    const struct chunk *chunk = chunk_at_locked(address);

    *ret_chunk = chunk->about;
    *ret_fd = chunk->fd;
}

bool exchange_is_whole(void)
{
    for (size_t i = 0; i < exchange.chunks.count; i++)
        if (!granule_is_kept(((const struct chunk *)exchange.chunks.sorted[i].value)->fd))
            return false;
    return true;
}

void exchange_give_up(void)
{
    for (size_t i = 0; i < exchange.chunks.count; i++)
        granule_give_up(((const struct chunk *)exchange.chunks.sorted[i].value)->fd);
}

/* ---- moving; all with the lock ---- */

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

/* The server knows best whether the client has work, and does nothing while it has. */
static CUresult move_when_idle(uint64_t address, bool out, int *ret_fd)
{
    struct timespec pause = {0, 20000};
    uint64_t start = now_ns();
    CUresult result;

    while ((result = granule_move(address, out, ret_fd)) == CUDA_ERROR_NOT_READY &&
           now_ns() - start < WAIT_NS) {
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < 1000000)
            pause.tv_nsec *= 2;
    }
    return result;
}

/* Said once. Where the driver has no such memory of the host, nothing is tried again. */
static void explain_move(CUresult result)
{
    if (result == CUDA_SUCCESS && !exchange.told)
        client_log("there is more managed memory than the device, or the memory limit, has "
                   "capacity for: unused chunks wait in the host's memory, where kernels reach "
                   "them slowly");
    if (result == CUDA_SUCCESS)
        exchange.told = true;
    if (result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_INVALID_VALUE)
        exchange.impossible = true;
    if (result == CUDA_ERROR_NOT_READY)
        exchange.paused_until = exchange.now + PAUSE_USES;
}

static CUresult move_locked(struct chunk *chunk, bool out)
{
    int fd = -1;
    CUresult result = move_when_idle(chunk->about.address, out, &fd);

    explain_move(result);
    if (result != CUDA_SUCCESS)
        return result;
    fd_close(&chunk->fd);
    chunk->fd = fd;
    count_out(chunk, -1);
    chunk->about.out = out;
    chunk->about.since = 0;
    count_out(chunk, 1);
    return result;
}

static bool may_try(void)
{
    return !exchange.impossible && exchange.now >= exchange.paused_until;
}

/* Sends out chunks that were used before `limit`: false when that frees too little. */
static bool send_out_locked(uint32_t device, uint64_t size, uint64_t limit)
{
    const struct exchange_chunk *out[MOST_OUT];
    const struct exchange_chunk **all = malloc(exchange.chunks.count * sizeof(*all) + 1);
    size_t count = 0;

    for (size_t i = 0; all && i < exchange.chunks.count; i++)
        all[i] = &((const struct chunk *)exchange.chunks.sorted[i].value)->about;
    if (all)
        count = exchange_plan(all, exchange.chunks.count, device, size, limit, out, MOST_OUT);
    free(all);
    for (size_t i = 0; i < count; i++)
        if (move_locked(chunk_at_locked(out[i]->address), true) != CUDA_SUCCESS)
            return false;
    return count > 0;
}

/* Memory may have been freed since. The server is not asked again and again. */
static bool may_have_capacity(const struct chunk *chunk)
{
    return !chunk->had_no_capacity || chunk->releases != granule_releases();
}

static bool move_in_locked(struct chunk *chunk)
{
    if (!may_have_capacity(chunk))
        return false;
    chunk->releases = granule_releases();
    chunk->had_no_capacity = move_locked(chunk, false) == CUDA_ERROR_OUT_OF_MEMORY;
    return !chunk->about.out;
}

/* For a chunk that is out, in place of chunks that were used before `limit`. */
static bool bring_in_locked(struct chunk *chunk, uint64_t limit)
{
    if (move_in_locked(chunk))
        return true;
    return may_try() && limit && send_out_locked(chunk->about.device, chunk->about.size, limit) &&
           move_locked(chunk, false) == CUDA_SUCCESS;
}

/* ---- uses ---- */

struct used {
    struct chunk *chunks[MOST_USED]; /* that are out */
    unsigned count;
};

static void note_use_locked(struct chunk *chunk, struct used *used)
{
    if (chunk->noted == exchange.now)
        return;
    chunk->noted = exchange.now;
    if (!chunk->about.out)
        chunk->about.used = exchange.now;
    else if (used->count < MOST_USED && chunk->about.wish != WISH_HOST)
        used->chunks[used->count++] = chunk;
}

/* A kernel with a pointer into an area may use all of that. */
static void note_area_locked(const struct chunk *chunk, struct used *used)
{
    const struct range *at = ranges_find(&exchange.chunks, chunk->about.area);
    const struct range *end = exchange.chunks.sorted + exchange.chunks.count;

    for (; at < end && ((struct chunk *)at->value)->about.area == chunk->about.area; at++)
        note_use_locked(at->value, used);
}

static void find_uses_locked(const void *params, size_t size, struct used *used)
{
    for (size_t at = 0; at + sizeof(uint64_t) <= size; at += sizeof(uint64_t)) {
        struct chunk *chunk;
        uint64_t word;

        memcpy(&word, (const char *)params + at, sizeof(word));
        chunk = chunk_at_locked(word);
        if (chunk && chunk->noted != exchange.now)
            note_area_locked(chunk, used);
    }
}

/* A first use only begins to count. So does one after which nothing could go. */
static bool serve_use_locked(struct chunk *chunk)
{
    if (bring_in_locked(chunk, chunk->about.since)) {
        chunk->about.used = exchange.now;
        return true;
    }
    chunk->about.since = exchange.now;
    return false;
}

/* Where there is no capacity for one chunk of an area, there is none for the next one. */
static void serve_uses_locked(const struct used *used)
{
    uint64_t full = 0;

    for (unsigned i = 0; i < used->count && may_try(); i++) {
        struct chunk *chunk = used->chunks[i];
        bool counts = chunk->about.since != 0;

        if (counts && chunk->about.area == full)
            chunk->about.since = exchange.now;
        else if (!serve_use_locked(chunk) && counts)
            full = chunk->about.area;
    }
}

void exchange_use(const void *params, size_t size)
{
    struct used used = {.count = 0};

    if (!any_is_out())
        return;
    pthread_mutex_lock(&exchange.lock);
    exchange.now++;
    find_uses_locked(params, size, &used);
    serve_uses_locked(&used);
    pthread_mutex_unlock(&exchange.lock);
}

/* ---- advice and prefetches of the program ---- */

static struct chunk *chunk_in_locked(uint64_t address, uint64_t end)
{
    const struct range *range = ranges_find(&exchange.chunks, address);

    if (!range)
        range = ranges_next(&exchange.chunks, address);
    return range && address < end && range->start < end ? range->value : NULL;
}

static void prefetch_chunk_locked(struct chunk *chunk, bool on_device)
{
    if (!on_device) {
        chunk->about.used = 0;
        return;
    }
    if (chunk->about.out && may_try())
        bring_in_locked(chunk, exchange.now);
    chunk->about.used = exchange.now;
}

void exchange_prefetch(uint64_t address, uint64_t size, bool on_device)
{
    uint64_t end = address + size;
    struct chunk *chunk;

    if (!any_is_out())
        return;
    pthread_mutex_lock(&exchange.lock);
    exchange.now++;
    for (; (chunk = chunk_in_locked(address, end));
         address = chunk->about.address + chunk->about.size)
        prefetch_chunk_locked(chunk, on_device);
    pthread_mutex_unlock(&exchange.lock);
}

/* Whether most of a chunk lies in [address, end). */
static bool is_most_of(const struct chunk *chunk, uint64_t address, uint64_t end)
{
    uint64_t first = chunk->about.address, last = first + chunk->about.size;

    first = address > first ? address : first;
    last = end < last ? end : last;
    return last - first > chunk->about.size / 2;
}

void exchange_prefer(uint64_t address, uint64_t size, enum exchange_wish wish)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&exchange.lock);
    uint64_t end = address + size;
    struct chunk *chunk;

    for (uint64_t at = address; (chunk = chunk_in_locked(at, end));
         at = chunk->about.address + chunk->about.size)
        if (is_most_of(chunk, address, end))
            chunk->about.wish = wish;
}

/* Bytes that are missing beside the free memory, or 1 where none seem to be. */
static uint64_t missing_bytes(uint32_t device, uint64_t size)
{
    const struct wire_cuMemGetInfo_v2 in = {.device = device_index_of(device)};
    struct wire_cuMemGetInfo_v2_reply out;

    if (wire_cuMemGetInfo_v2(&client->channel, &in, &out) != CUDA_SUCCESS)
        return size;
    return size > out.free ? size - out.free : 1;
}

bool exchange_free_capacity(uint32_t device, uint64_t size)
{
    uint64_t whole = (size + GRANULARITY - 1) & ~(GRANULARITY - 1);
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&exchange.lock);

    return !exchange.impossible && exchange.chunks.count &&
           send_out_locked(device, missing_bytes(device, whole), UINT64_MAX);
}

/* ---- fork ---- */

void exchange_before_fork(void)
{
    pthread_mutex_lock(&exchange.lock);
}

void exchange_after_fork_in_parent(void)
{
    pthread_mutex_unlock(&exchange.lock);
}

void exchange_after_fork_in_child(void)
{
    for (size_t i = 0; i < exchange.chunks.count; i++)
        fd_close(&((struct chunk *)exchange.chunks.sorted[i].value)->fd);
}
