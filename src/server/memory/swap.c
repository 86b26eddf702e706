/* SPDX-License-Identifier: Apache-2.0 */
/* See swap.h. Memory is released when all copies are made. */
#include "swap.h"

#include <errno.h>
#include <string.h>

#include "allocation_place.h"
#include "device_granule.h"
#include "memory_state.h"
#include "swap_copy.h"
#include "swap_file.h"
#include "swap_kept.h"
#include "swap_moves.h"
#include "swap_pool.h"
#include "swap_transfer.h"

/* ---- a granule's copy in the pool ---- */

static CUresult take_segments(struct session *session, struct granule *granule, unsigned count)
{
    const struct device *device = session_device(session, granule->part);
    struct swap_copy *copy = granule->swapped;
    CUresult result = CUDA_SUCCESS;

    for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++) {
        result = swap_keep_take(session, device, swap_segment_size(copy, i), &copy->segments[i]);
        copy->count += result == CUDA_SUCCESS;
    }
    return result;
}

static CUresult make_copy(struct session *session, struct granule *granule)
{
    unsigned count = (unsigned)((granule->size + SWAP_CHUNK - 1) / SWAP_CHUNK);

    CUresult result = swap_copy_begin(session, granule, count);

    if (result != CUDA_SUCCESS)
        return result;
    result = take_segments(session, granule, count);
    if (result != CUDA_SUCCESS)
        swap_forget(session, granule);
    return result;
}

/* ---- out ---- */

static CUresult forget_copy(struct session *session, struct granule *granule, void *context)
{
    swap_forget(session, granule);
    return CUDA_SUCCESS;
}

static void forget_all(struct session *session)
{
    swap_for_each(session, SWAP_MOVING, granule_close, NULL);
    swap_for_each(session, SWAP_MOVING, forget_copy, NULL);
    swap_for_each(session, SWAP_HERE, granule_close, NULL);
}

static enum suspend_result result_of_file(struct session *session, int error)
{
    if (error == -ENOSPC || error == -EDQUOT || error == -EFBIG)
        return SUSPEND_FILE_FULL;
    session_log_error(session, "the file for its memory cannot be used: %s", strerror(-error));
    return error == -EBADMSG ? SUSPEND_FILE_DAMAGED : SUSPEND_FILE_FAILED;
}

static enum suspend_result result_of(struct session *session, CUresult result,
                                     enum suspend_result out_of_memory)
{
    if (result == CUDA_SUCCESS)
        return SUSPEND_OK;
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return out_of_memory;
    session_log_error(session, "its memory cannot be moved: %s", driver_error_name(result));
    return SUSPEND_FAILED;
}

static enum suspend_result result_of_saving(struct session *session, CUresult result, int error)
{
    return error ? result_of_file(session, error) : result_of(session, result, SUSPEND_FAILED);
}

enum suspend_result swap_checkpoint_begin(struct session *session, int file)
{
    int error = 0;
    CUresult result = swap_for_each(session, SWAP_HERE, granule_open, NULL);

    if (result == CUDA_SUCCESS)
        result = swap_writing_begin(session, file, &error);
    swap_for_each(session, SWAP_HERE, granule_close, NULL);
    return result_of_saving(session, result, error);
}

bool swap_checkpoint_runs(const struct session *session)
{
    return swap_writing_runs(session);
}

enum suspend_result swap_checkpoint_end(struct session *session)
{
    int error;
    CUresult result = swap_writing_end(session, &error);

    return result_of_saving(session, result, error);
}

void swap_checkpoint_cancel(struct session *session)
{
    swap_writing_cancel(session);
}

static CUresult withdraw_saved(struct session *session, struct granule *granule, void *context)
{
    device_granule_withdraw_saved(session, granule, granule->swapped->fd);
    return CUDA_SUCCESS;
}

enum suspend_result swap_out_to_file(struct session *session, const struct swap_saving *saving)
{
    int error = 0;
    CUresult result = swap_for_each(session, SWAP_HERE, granule_open, NULL);

    if (result == CUDA_SUCCESS)
        result = swap_save(session, saving, &error);
    if (result == CUDA_SUCCESS)
        swap_for_each(session, SWAP_MOVING, withdraw_saved, NULL);
    else
        forget_all(session);
    return result_of_saving(session, result, error);
}

/* ---- what leaves ---- */

struct leaving {
    const struct swap_part *part; /* NULL = all */
    uint64_t rest;                /* bytes that are not chosen yet */
    struct granule *smallest;     /* of those that were too large for the rest */
};

static bool is_of_part(const struct leaving *leaving, const struct granule *granule)
{
    return !leaving->part || granule->part == leaving->part->device;
}

static CUresult begin_copy(struct session *session, struct granule *granule,
                           struct leaving *leaving)
{
    CUresult result = granule_open(session, granule, NULL);

    if (result == CUDA_SUCCESS && !granule->swapped)
        result = make_copy(session, granule);
    if (result == CUDA_SUCCESS && leaving->part)
        leaving->rest -= granule->size < leaving->rest ? granule->size : leaving->rest;
    return result;
}

/* What is kept of this client is claimed before room for more is taken. */
static CUresult choose_kept(struct session *session, struct granule *granule, void *context)
{
    struct leaving *leaving = context;

    if (!is_of_part(leaving, granule) || granule->size > leaving->rest)
        return CUDA_SUCCESS;
    swap_keep_claim(session, granule);
    return granule->swapped ? begin_copy(session, granule, leaving) : CUDA_SUCCESS;
}

static CUresult choose_fitting(struct session *session, struct granule *granule, void *context)
{
    struct leaving *leaving = context;

    if (!is_of_part(leaving, granule))
        return CUDA_SUCCESS;
    if (granule->size <= leaving->rest)
        return begin_copy(session, granule, leaving);
    if (!leaving->smallest || granule->size < leaving->smallest->size)
        leaving->smallest = granule;
    return CUDA_SUCCESS;
}

static CUresult choose_smallest(struct session *session, struct leaving *leaving)
{
    struct granule *granule = leaving->smallest;

    if (!leaving->part || !leaving->rest || !granule)
        return CUDA_SUCCESS;
    swap_keep_claim(session, granule);
    CUresult result = session_enter(session, session_device(session, granule->part));
    return result == CUDA_SUCCESS ? begin_copy(session, granule, leaving) : result;
}

/* Gives copies to those that leave. */
static CUresult choose(struct session *session, const struct swap_part *part)
{
    struct leaving leaving = {.part = part, .rest = part ? part->bytes : UINT64_MAX};
    CUresult result = swap_for_each(session, SWAP_HERE, choose_kept, &leaving);

    if (result == CUDA_SUCCESS)
        result = swap_for_each(session, SWAP_HERE, choose_fitting, &leaving);
    return result == CUDA_SUCCESS ? choose_smallest(session, &leaving) : result;
}

static CUresult withdraw_memory(struct session *session, struct granule *granule, void *context)
{
    device_granule_withdraw(session, granule);
    return CUDA_SUCCESS;
}

enum suspend_result swap_out(struct session *session, const struct swap_part *part,
                             uint64_t *ret_copied)
{
    CUresult result = choose(session, part);

    if (result == CUDA_SUCCESS)
        result = swap_moves_out(session, ret_copied);
    if (result == CUDA_SUCCESS)
        swap_for_each(session, SWAP_MOVING, withdraw_memory, NULL);
    else
        forget_all(session);
    return result_of(session, result, SUSPEND_POOL_FULL);
}

/* ---- in ---- */

static CUresult restore_memory(struct session *session, struct granule *granule, void *context)
{
    struct swap_room *room = context;

    if (room && room->bytes[granule->part] < granule->size)
        return CUDA_SUCCESS;
    if (room)
        room->bytes[granule->part] -= granule->size;
    return device_granule_restore(session, granule);
}

static CUresult withdraw_restored(struct session *session, struct granule *granule, void *context)
{
    device_granule_unrestore(session, granule);
    return CUDA_SUCCESS;
}

static CUresult finish_return(struct session *session, struct granule *granule, void *context)
{
    swap_keep(session, granule);
    device_granule_keep_again(session, granule);
    return granule_close(session, granule, NULL);
}

enum suspend_result swap_in(struct session *session, struct swap_room *room)
{
    int error = 0;
    CUresult result = swap_for_each(session, SWAP_AWAY, restore_memory, room);

    if (result == CUDA_SUCCESS)
        result = swap_moves_in(session);
    if (result == CUDA_SUCCESS)
        result = swap_load(session, &error);
    swap_for_each(session, SWAP_MOVING, result == CUDA_SUCCESS ? finish_return : withdraw_restored,
                  NULL);
    return error ? result_of_file(session, error) : result_of(session, result, SUSPEND_NO_MEMORY);
}

CUresult swap_adopt(struct session *session, struct granule *granule, int fd)
{
    struct swap_entry entry;
    int error = swap_file_find(fd, device_granule_key(granule), granule->size, &entry);

    if (error) {
        session_log_error(session, "the file with the memory at %#llx cannot be used: %s",
                          (unsigned long long)device_granule_key(granule), strerror(-error));
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult result = swap_copy_begin(session, granule, 0);
    if (result != CUDA_SUCCESS)
        return result;
    granule->is_away = true;
    granule->swapped->entry = entry;
    result = swap_copy_give_file(granule->swapped, fd);
    if (result != CUDA_SUCCESS)
        swap_forget(session, granule);
    return result;
}

/* ---- what others ask ---- */

static CUresult find_flag(struct session *session, struct granule *granule, void *context)
{
    bool *found = context;

    *found |= (granule->swapped->entry.flags & SWAP_RETURNS) != 0;
    return CUDA_SUCCESS;
}

bool swap_returns(struct session *session)
{
    bool found = false;

    swap_for_each(session, SWAP_AWAY, find_flag, &found);
    return found;
}

static enum suspend_result granule_obstacle(const struct granule *granule)
{
    if (granule->share)
        return SUSPEND_SHARED;
    return granule->dma_buf ? SUSPEND_DMA_BUF : SUSPEND_OK;
}

static enum suspend_result allocation_obstacle(const struct session *session)
{
    list_for_each (struct allocation, allocation, &session->memory->created, link) {
        if (allocation->shared)
            return SUSPEND_ALLOCATIONS;
        if (allocation->memory.dma_buf)
            return SUSPEND_DMA_BUF;
    }
    return SUSPEND_OK;
}

enum suspend_result swap_obstacle(const struct session *session)
{
    const struct session_memory *memory = session->memory;
    enum suspend_result result = allocation_obstacle(session);
    const struct range *range;

    if (!list_empty(&memory->imports))
        return SUSPEND_SHARED;
    for (uint64_t at = 0; result == SUSPEND_OK; at = range->start + 1) {
        range = ranges_next(&memory->extents, at);
        if (!range)
            break;
        result = granule_obstacle(range->value);
    }
    return result;
}

static CUresult check_inbox(struct session *session, struct granule *granule, void *context)
{
    return granule->kept.inbox >= 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

bool swap_is_kept(struct session *session)
{
    return swap_for_each(session, SWAP_HERE, check_inbox, NULL) == CUDA_SUCCESS;
}

uint64_t swap_bytes(const struct session *session, unsigned device)
{
    return session->memory->device[device].swapped;
}

uint64_t swap_bytes_in_all(const struct session *session)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < session->server->devices.count; i++)
        bytes += swap_bytes(session, i);
    return bytes;
}

struct count {
    unsigned device;
    uint64_t bytes;
};

static CUresult count_bytes(struct session *session, struct granule *granule, void *context)
{
    struct count *count = context;

    if (granule->part == count->device)
        count->bytes += granule->size;
    return CUDA_SUCCESS;
}

uint64_t swap_bytes_here(struct session *session, unsigned device)
{
    struct count count = {device, 0};

    swap_for_each(session, SWAP_HERE, count_bytes, &count);
    return count.bytes;
}

struct swap_pool_usage swap_pool_usage(const struct server *server)
{
    const struct swap_pool *pool = &server->memory->swap_pool;

    return (struct swap_pool_usage){.locked = pool->bytes, .used = pool->used, .kept = pool->kept};
}

bool swap_lock_ahead(struct server *server, const struct device *device, uint64_t unused)
{
    return swap_pool_lock_ahead(&server->memory->swap_pool, device, unused);
}

void swap_trim(struct server *server)
{
    swap_pool_trim(&server->memory->swap_pool);
}
