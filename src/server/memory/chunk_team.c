/* SPDX-License-Identifier: Apache-2.0 */
/* See chunk_team.h. The session's thread is one of the team. */
#include "chunk_team.h"

#include <errno.h>
#include <pthread.h>

#include "cleanup.h"
#include "cpus.h"
#include "device.h"
#include "memory_state.h"
#include "swap_file.h"
#include "swap_staging.h"

struct chunk {
    const struct chunk_region *region;
    uint64_t done, size; /* where it begins in its region */
};

struct team {
    const struct chunk_order *order;
    pthread_mutex_t lock; /* of all below */
    unsigned region;      /* the next chunk */
    uint64_t done;
    CUresult result; /* the first error; then no thread takes a chunk */
    int error;
};

struct member {
    struct team *team;
    unsigned char *buffer;
    const struct device *device; /* whose context the thread is in, with `stream` */
    CUstream stream;
    pthread_t thread;
};

/* ---- what is left to do ---- */

static uint64_t chunk_size(const struct chunk_region *region, uint64_t done)
{
    uint64_t left = region->size - done;

    return left < SWAP_FILE_CHUNK ? left : SWAP_FILE_CHUNK;
}

static bool is_unchanged(const struct chunk *chunk)
{
    const uint8_t *unchanged = chunk->region->unchanged;

    return unchanged && unchanged[chunk->done / SWAP_FILE_CHUNK];
}

static bool take_next_locked(struct team *team, struct chunk *ret_chunk)
{
    const struct chunk_order *order = team->order;

    if (team->result != CUDA_SUCCESS || team->region == order->count)
        return false;
    const struct chunk_region *region = &order->regions[team->region];
    *ret_chunk = (struct chunk){region, team->done, chunk_size(region, team->done)};
    team->done += ret_chunk->size;
    if (team->done == region->size) {
        team->region++;
        team->done = 0;
    }
    return true;
}

static bool take_chunk(struct team *team, struct chunk *ret_chunk)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&team->lock);

    while (take_next_locked(team, ret_chunk))
        if (!is_unchanged(ret_chunk))
            return true;
    return false;
}

static void note_failure(struct team *team, CUresult result, int error)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&team->lock);

    if (team->result != CUDA_SUCCESS)
        return;
    team->result = result;
    team->error = error;
}

/* ---- one chunk ---- */

static CUresult copy_and_wait(const struct member *member, CUdeviceptr dst, CUdeviceptr src,
                              uint64_t size)
{
    CUresult result = driver.cuMemcpyAsync(dst, src, size, member->stream);

    return result == CUDA_SUCCESS ? driver.cuStreamSynchronize(member->stream) : result;
}

static CUresult read_device(const struct member *member, const struct chunk *chunk)
{
    return copy_and_wait(member, (uintptr_t)member->buffer, chunk->region->address + chunk->done,
                         chunk->size);
}

/* The session's thread waits for the lock before it unmaps memory. */
static CUresult read_watched(const struct member *member, const struct chunk *chunk,
                             bool *ret_is_gone)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&member->team->order->watch->lock);

    *ret_is_gone = chunk->region->is_gone;
    return *ret_is_gone ? CUDA_SUCCESS : read_device(member, chunk);
}

static int write_chunk(const struct member *member, const struct chunk *chunk)
{
    const struct chunk_region *region = chunk->region;
    uint64_t number = chunk->done / SWAP_FILE_CHUNK, offset = region->offset + chunk->done;

    if (region->versions)
        region->versions[number] = chunk_hash_of(member->buffer, chunk->size);
    return region->rewrites ? swap_file_rewrite(region->fd, offset, member->buffer, chunk->size,
                                                &region->hashes[number])
                            : swap_file_write(region->fd, offset, member->buffer, chunk->size,
                                              &region->hashes[number]);
}

static CUresult save_chunk(const struct member *member, const struct chunk *chunk, int *ret_error)
{
    bool is_gone = false;
    CUresult result = member->team->order->watch ? read_watched(member, chunk, &is_gone)
                                                 : read_device(member, chunk);

    if (result == CUDA_SUCCESS && !is_gone)
        *ret_error = write_chunk(member, chunk);
    return result;
}

static CUresult load_chunk(const struct member *member, const struct chunk *chunk, int *ret_error)
{
    const struct chunk_region *region = chunk->region;

    *ret_error = swap_file_read(region->fd, region->offset + chunk->done, member->buffer,
                                chunk->size, &region->hashes[chunk->done / SWAP_FILE_CHUNK]);
    return *ret_error ? CUDA_SUCCESS
                      : copy_and_wait(member, region->address + chunk->done,
                                      (uintptr_t)member->buffer, chunk->size);
}

/* ---- a thread ---- */

static void end_stream(struct member *member)
{
    if (member->stream)
        driver.cuStreamDestroy_v2(member->stream);
    member->stream = NULL;
    member->device = NULL;
}

static CUresult go_to_device(struct member *member, const struct device *device)
{
    if (member->device == device)
        return CUDA_SUCCESS;
    end_stream(member);
    CUresult result = device_enter(device);
    if (result == CUDA_SUCCESS)
        result = driver.cuStreamCreateWithPriority(&member->stream, CU_STREAM_NON_BLOCKING, 0);
    if (result == CUDA_SUCCESS)
        member->device = device;
    return result;
}

static bool is_cancelled(const struct chunk_order *order)
{
    return order->session->stop || (order->watch && order->watch->cancelled);
}

static CUresult move_chunk(struct member *member, const struct chunk *chunk, int *ret_error)
{
    const struct chunk_order *order = member->team->order;

    *ret_error = is_cancelled(order) ? -ECANCELED : 0;
    CUresult result = *ret_error ? CUDA_SUCCESS : go_to_device(member, chunk->region->device);
    if (result == CUDA_SUCCESS && !*ret_error)
        result = order->out ? save_chunk(member, chunk, ret_error)
                            : load_chunk(member, chunk, ret_error);
    return *ret_error ? CUDA_ERROR_OPERATING_SYSTEM : result;
}

static void *run_member(void *context)
{
    struct member *member = context;
    struct chunk chunk;
    int error;

    while (take_chunk(member->team, &chunk)) {
        CUresult result = move_chunk(member, &chunk, &error);
        if (result != CUDA_SUCCESS)
            note_failure(member->team, result, error);
    }
    end_stream(member);
    return NULL;
}

/* ---- all of them ---- */

/* As many threads as there are CPUs and work for. */
static unsigned team_size(const struct chunk_order *order)
{
    uint64_t size = 0, most = order->threads ? order->threads : SWAP_BUFFERS;

    for (unsigned i = 0; i < order->count && size < most; i++)
        size += swap_file_chunks(order->regions[i].size);
    if (size > most)
        size = most;
    return size > cpus_available() ? cpus_available() : (unsigned)size;
}

static struct swap_staging *staging_of(const struct chunk_order *order)
{
    return &order->session->server->memory->swap_staging;
}

/* How many members have a buffer. */
static unsigned take_buffers(struct team *team, struct member *members)
{
    unsigned wanted = team_size(team->order), count = 0;

    for (; count < wanted; count++) {
        members[count] = (struct member){.team = team};
        members[count].buffer = swap_staging_take(staging_of(team->order));
        if (!members[count].buffer)
            break;
    }
    return count;
}

static void give_buffers(const struct team *team, const struct member *members, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        swap_staging_give(staging_of(team->order), members[i].buffer);
}

/* With fewer where no more threads can be made. */
static void run_members(struct member *members, unsigned wanted)
{
    unsigned count = 0;

    while (count + 1 < wanted &&
           !pthread_create(&members[count].thread, NULL, run_member, &members[count]))
        count++;
    run_member(&members[count]);
    for (unsigned i = 0; i < count; i++)
        pthread_join(members[i].thread, NULL);
}

CUresult chunk_team_work(const struct chunk_order *order, int *ret_error)
{
    struct team team = {.order = order, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct member members[SWAP_BUFFERS];

    *ret_error = 0;
    if (!order->count)
        return CUDA_SUCCESS;
    unsigned count = take_buffers(&team, members);
    if (!count)
        return CUDA_ERROR_OUT_OF_MEMORY;
    run_members(members, count);
    give_buffers(&team, members, count);
    *ret_error = team.error;
    return team.result;
}

CUresult chunk_team_run(const struct chunk_order *order, int *ret_error)
{
    struct session *session = order->session;
    CUresult result = chunk_team_work(order, ret_error);

    session->current = NULL; /* the thread may be in another device's context now */
    session_check(session, result);
    return result;
}
