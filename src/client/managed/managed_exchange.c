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

/* So many pieces change places for one that comes in. */
#define MOST_OUT 64u

/* What a launch is asked for at most. */
#define MOST_USED 64u

/* How long is waited for the client's work to end, and for how many uses nothing is tried when that
 * took longer. */
#define WAIT_NS 1000000000ull
#define PAUSE_USES 1000u

/* Device memory is taken in multiples of so many bytes. */
#define GRANULARITY (UINT64_C(2) << 20)

struct piece {
    struct exchange_piece about;
    int fd;            /* of its memory, which it keeps alive; or -1 */
    uint64_t noted;    /* the use that it was noted for last */
    uint64_t releases; /* when there was no room, and how much had been freed until then */
    bool had_no_room;
};

static struct {
    pthread_mutex_t lock;       /* held while memory changes places */
    struct ranges pieces;       /* struct piece */
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
static void count_out(const struct piece *piece, int by)
{
    if (piece->about.out)
        atomic_fetch_add_explicit(&exchange.out_count, (unsigned)by, memory_order_release);
}

static struct piece *piece_at_locked(uint64_t address)
{
    const struct range *range = ranges_find(&exchange.pieces, address);

    return range ? range->value : NULL;
}

bool exchange_enter(const struct exchange_piece *about, int fd)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&exchange.lock);
    struct piece *piece = calloc(1, sizeof(*piece));

    if (!piece)
        return false;
    piece->about = *about;
    piece->fd = fd;
    if (ranges_add(&exchange.pieces, about->address, about->size, piece)) {
        free(piece);
        return false;
    }
    count_out(piece, 1);
    return true;
}

uint64_t exchange_leave(uint64_t address, int *ret_fd)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&exchange.lock);
    struct piece *piece;
    struct range removed;

    ranges_remove(&exchange.pieces, address, &removed);
    piece = removed.value;
    count_out(piece, -1);
    *ret_fd = piece->fd;
    free(piece);
    return removed.size;
}

void exchange_look(uint64_t address, struct exchange_piece *ret_piece, int *ret_fd)
{
    const struct piece *piece = piece_at_locked(address);

    *ret_piece = piece->about;
    *ret_fd = piece->fd;
}

bool exchange_is_whole(void)
{
    for (size_t i = 0; i < exchange.pieces.count; i++)
        if (((const struct piece *)exchange.pieces.sorted[i].value)->fd < 0)
            return false;
    return true;
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
static void explain(CUresult result)
{
    if (result == CUDA_SUCCESS && !exchange.told)
        client_log("there is more managed memory than the device, or the memory limit, has room "
                   "for: pieces that are not used wait in the host's memory, where kernels reach "
                   "them slowly");
    if (result == CUDA_SUCCESS)
        exchange.told = true;
    if (result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_INVALID_VALUE)
        exchange.impossible = true;
    if (result == CUDA_ERROR_NOT_READY)
        exchange.paused_until = exchange.now + PAUSE_USES;
}

static CUresult move_locked(struct piece *piece, bool out)
{
    int fd = -1;
    CUresult result = move_when_idle(piece->about.address, out, &fd);

    explain(result);
    if (result != CUDA_SUCCESS)
        return result;
    fd_close(&piece->fd);
    piece->fd = fd;
    count_out(piece, -1);
    piece->about.out = out;
    piece->about.since = 0;
    count_out(piece, 1);
    return result;
}

static bool may_try(void)
{
    return !exchange.impossible && exchange.now >= exchange.paused_until;
}

/* Sends out what was used before `limit`: false when that does not make room. */
static bool send_out_locked(uint32_t device, uint64_t size, uint64_t limit)
{
    const struct exchange_piece *out[MOST_OUT];
    const struct exchange_piece **all = malloc(exchange.pieces.count * sizeof(*all) + 1);
    size_t count = 0;

    for (size_t i = 0; all && i < exchange.pieces.count; i++)
        all[i] = &((const struct piece *)exchange.pieces.sorted[i].value)->about;
    if (all)
        count = exchange_plan(all, exchange.pieces.count, device, size, limit, out, MOST_OUT);
    free(all);
    for (size_t i = 0; i < count; i++)
        if (move_locked(piece_at_locked(out[i]->address), true) != CUDA_SUCCESS)
            return false;
    return count > 0;
}

/* What has been freed since may be enough. The server is not asked again and again. */
static bool there_may_be_room(const struct piece *piece)
{
    return !piece->had_no_room || piece->releases != granule_releases();
}

static bool move_into_room_locked(struct piece *piece)
{
    if (!there_may_be_room(piece))
        return false;
    piece->releases = granule_releases();
    piece->had_no_room = move_locked(piece, false) == CUDA_ERROR_OUT_OF_MEMORY;
    return !piece->about.out;
}

/* For a piece that is out, in place of pieces that were used before `limit`. */
static bool bring_in_locked(struct piece *piece, uint64_t limit)
{
    if (move_into_room_locked(piece))
        return true;
    return may_try() && limit && send_out_locked(piece->about.device, piece->about.size, limit) &&
           move_locked(piece, false) == CUDA_SUCCESS;
}

/* ---- uses ---- */

struct used {
    struct piece *pieces[MOST_USED]; /* that are out */
    unsigned count;
};

static void note_use_locked(struct piece *piece, struct used *used)
{
    if (piece->noted == exchange.now)
        return;
    piece->noted = exchange.now;
    if (!piece->about.out)
        piece->about.used = exchange.now;
    else if (used->count < MOST_USED && piece->about.wish != WISH_HOST)
        used->pieces[used->count++] = piece;
}

/* A kernel with a pointer into an area may use all of that. */
static void note_area_locked(const struct piece *piece, struct used *used)
{
    const struct range *at = ranges_find(&exchange.pieces, piece->about.area);
    const struct range *end = exchange.pieces.sorted + exchange.pieces.count;

    for (; at < end && ((struct piece *)at->value)->about.area == piece->about.area; at++)
        note_use_locked(at->value, used);
}

static void find_uses_locked(const void *params, size_t size, struct used *used)
{
    for (size_t at = 0; at + sizeof(uint64_t) <= size; at += sizeof(uint64_t)) {
        struct piece *piece;
        uint64_t word;

        memcpy(&word, (const char *)params + at, sizeof(word));
        piece = piece_at_locked(word);
        if (piece && piece->noted != exchange.now)
            note_area_locked(piece, used);
    }
}

/* A first use only begins to count. So does one after which nothing could go. */
static bool serve_use_locked(struct piece *piece)
{
    if (bring_in_locked(piece, piece->about.since)) {
        piece->about.used = exchange.now;
        return true;
    }
    piece->about.since = exchange.now;
    return false;
}

/* Where one piece of an area finds no room, the next one finds none either. */
static void serve_uses_locked(const struct used *used)
{
    uint64_t full = 0;

    for (unsigned i = 0; i < used->count && may_try(); i++) {
        struct piece *piece = used->pieces[i];
        bool counts = piece->about.since != 0;

        if (counts && piece->about.area == full)
            piece->about.since = exchange.now;
        else if (!serve_use_locked(piece) && counts)
            full = piece->about.area;
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

/* ---- what the program says ---- */

static struct piece *piece_in_locked(uint64_t address, uint64_t end)
{
    const struct range *range = ranges_find(&exchange.pieces, address);

    if (!range)
        range = ranges_next(&exchange.pieces, address);
    return range && address < end && range->start < end ? range->value : NULL;
}

static void prefetch_piece_locked(struct piece *piece, bool on_device)
{
    if (!on_device) {
        piece->about.used = 0;
        return;
    }
    if (piece->about.out && may_try())
        bring_in_locked(piece, exchange.now);
    piece->about.used = exchange.now;
}

void exchange_prefetch(uint64_t address, uint64_t size, bool on_device)
{
    uint64_t end = address + size;
    struct piece *piece;

    if (!any_is_out())
        return;
    pthread_mutex_lock(&exchange.lock);
    exchange.now++;
    for (; (piece = piece_in_locked(address, end));
         address = piece->about.address + piece->about.size)
        prefetch_piece_locked(piece, on_device);
    pthread_mutex_unlock(&exchange.lock);
}

/* Whether most of a piece lies in [address, end). */
static bool is_most_of(const struct piece *piece, uint64_t address, uint64_t end)
{
    uint64_t first = piece->about.address, last = first + piece->about.size;

    first = address > first ? address : first;
    last = end < last ? end : last;
    return last - first > piece->about.size / 2;
}

void exchange_prefer(uint64_t address, uint64_t size, enum exchange_wish wish)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&exchange.lock);
    uint64_t end = address + size;
    struct piece *piece;

    for (uint64_t at = address; (piece = piece_in_locked(at, end));
         at = piece->about.address + piece->about.size)
        if (is_most_of(piece, address, end))
            piece->about.wish = wish;
}

/* What is missing beside the free memory, or one piece where nothing seems to be. */
static uint64_t missing(uint32_t device, uint64_t size)
{
    const struct wire_cuMemGetInfo_v2 in = {.device = device};
    struct wire_cuMemGetInfo_v2_reply out;

    if (wire_cuMemGetInfo_v2(&client->channel, &in, &out) != CUDA_SUCCESS)
        return size;
    return size > out.free ? size - out.free : 1;
}

bool exchange_make_room(uint32_t device, uint64_t size)
{
    uint64_t whole = (size + GRANULARITY - 1) & ~(GRANULARITY - 1);
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&exchange.lock);

    return !exchange.impossible && exchange.pieces.count &&
           send_out_locked(device, missing(device, whole), UINT64_MAX);
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
    for (size_t i = 0; i < exchange.pieces.count; i++)
        fd_close(&((struct piece *)exchange.pieces.sorted[i].value)->fd);
}
