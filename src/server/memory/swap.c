/* SPDX-License-Identifier: Apache-2.0 */
/* See swap.h. All copies of a direction are in flight together; memory is released behind them. */
#include "swap.h"

#include <errno.h>
#include <string.h>

#include "device_granule.h"
#include "memory_state.h"
#include "placement.h"
#include "swap_copy.h"
#include "swap_file.h"
#include "swap_pool.h"
#include "swap_transfer.h"

/* ---- a granule's copy in the pool ---- */

static CUresult take_segments(struct session *session, struct granule *granule, unsigned count)
{
    const struct device *device = session_device(session, granule->part);
    CUresult result = CUDA_SUCCESS;

    for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++) {
        result = swap_pool_take(swap_pool_of(session), device, swap_segment_size(granule, i),
                                &granule->swapped->segments[i]);
        granule->swapped->count += result == CUDA_SUCCESS;
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

/* ---- copies ---- */

/* One stream for each device. */
struct swap_streams {
    CUstream stream[SERVER_MAX_DEVICES];
    bool out;
};

static CUresult copy_segments(const struct granule *granule, CUstream stream, bool out)
{
    const struct swap_copy *copy = granule->swapped;
    CUresult result = CUDA_SUCCESS;

    for (unsigned i = 0; i < copy->count && result == CUDA_SUCCESS; i++) {
        CUdeviceptr here = granule->address + i * SWAP_CHUNK, there = copy->segments[i];
        result = driver.cuMemcpyAsync(out ? there : here, out ? here : there,
                                      swap_segment_size(granule, i), stream);
    }
    return result;
}

static CUresult begin_copy(struct session *session, struct granule *granule, void *context)
{
    struct swap_streams *streams = context;
    CUstream *stream = &streams->stream[granule->part];
    CUresult result = CUDA_SUCCESS;

    if (granule->swapped->fd >= 0)
        return CUDA_SUCCESS;
    if (!*stream)
        result = driver.cuStreamCreateWithPriority(stream, CU_STREAM_NON_BLOCKING, 0);
    return result == CUDA_SUCCESS ? copy_segments(granule, *stream, streams->out) : result;
}

/* Returns `result`, or the first error of a copy. */
static CUresult end_copies(struct session *session, const struct swap_streams *streams,
                           CUresult result)
{
    for (unsigned i = 0; i < session->server->devices.count; i++) {
        if (!streams->stream[i] || session_enter(session, session_device(session, i)))
            continue;
        CUresult ended = driver.cuStreamSynchronize(streams->stream[i]);
        driver.cuStreamDestroy_v2(streams->stream[i]);
        if (result == CUDA_SUCCESS)
            result = ended;
    }
    session_check(session, result);
    return result;
}

static CUresult copy_all(struct session *session, bool out)
{
    struct swap_streams streams = {.out = out};
    CUresult result = swap_for_each(session, true, begin_copy, &streams);

    return end_copies(session, &streams, result);
}

/* ---- out ---- */

static CUresult prepare_copy(struct session *session, struct granule *granule, void *context)
{
    return make_copy(session, granule);
}

static CUresult forget_copy(struct session *session, struct granule *granule, void *context)
{
    swap_forget(session, granule);
    return CUDA_SUCCESS;
}

static CUresult withdraw_memory(struct session *session, struct granule *granule, void *context)
{
    device_granule_withdraw(session, granule);
    return CUDA_SUCCESS;
}

static CUresult withdraw_saved(struct session *session, struct granule *granule, void *context)
{
    device_granule_withdraw_saved(session, granule, granule->swapped->fd);
    return CUDA_SUCCESS;
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

enum suspend_result swap_checkpoint(struct session *session, int file)
{
    const struct swap_saving saving = {.writable = file, .readable = -1};
    int error;
    CUresult result = swap_save(session, &saving, &error);

    return error ? result_of_file(session, error) : result_of(session, result, SUSPEND_FAILED);
}

enum suspend_result swap_out_to_file(struct session *session, const struct swap_saving *saving)
{
    int error;
    CUresult result = swap_save(session, saving, &error);

    if (result == CUDA_SUCCESS)
        swap_for_each(session, true, withdraw_saved, NULL);
    else
        swap_for_each(session, true, forget_copy, NULL);
    return error ? result_of_file(session, error) : result_of(session, result, SUSPEND_FAILED);
}

enum suspend_result swap_out(struct session *session)
{
    CUresult result = swap_for_each(session, false, prepare_copy, NULL);

    if (result == CUDA_SUCCESS)
        result = copy_all(session, true);
    if (result == CUDA_SUCCESS)
        swap_for_each(session, true, withdraw_memory, NULL);
    else
        swap_for_each(session, true, forget_copy, NULL);
    return result_of(session, result, SUSPEND_POOL_FULL);
}

/* ---- in ---- */

/* How many granules have memory again. */
static CUresult restore_memory(struct session *session, struct granule *granule, void *context)
{
    unsigned *restored = context;
    CUresult result = device_granule_restore(session, granule);

    *restored += result == CUDA_SUCCESS;
    return result;
}

static CUresult withdraw_restored(struct session *session, struct granule *granule, void *context)
{
    unsigned *restored = context;

    if (!*restored)
        return CUDA_ERROR_NOT_FOUND;
    --*restored;
    return withdraw_memory(session, granule, NULL);
}

static CUresult finish_return(struct session *session, struct granule *granule, void *context)
{
    swap_forget(session, granule);
    device_granule_keep_again(session, granule);
    return CUDA_SUCCESS;
}

enum suspend_result swap_in(struct session *session)
{
    unsigned restored = 0;
    int error = 0;
    CUresult result = swap_for_each(session, true, restore_memory, &restored);

    if (result == CUDA_SUCCESS)
        result = copy_all(session, false);
    if (result == CUDA_SUCCESS)
        result = swap_load(session, &error);
    if (result == CUDA_SUCCESS)
        swap_for_each(session, true, finish_return, NULL);
    else
        swap_for_each(session, true, withdraw_restored, &restored);
    return error ? result_of_file(session, error) : result_of(session, result, SUSPEND_NO_MEMORY);
}

CUresult swap_adopt(struct session *session, struct granule *granule, int fd)
{
    struct swap_entry entry;
    int error = swap_file_find(fd, granule->address, granule->size, &entry);

    if (error) {
        session_log_error(session, "the file with the memory at %#llx cannot be used: %s",
                          (unsigned long long)granule->address, strerror(-error));
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult result = swap_copy_begin(session, granule, 0);
    if (result != CUDA_SUCCESS)
        return result;
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

    swap_for_each(session, true, find_flag, &found);
    return found;
}

static enum suspend_result granule_obstacle(const struct granule *granule)
{
    if (granule->share)
        return SUSPEND_SHARED;
    return granule->dma_buf ? SUSPEND_DMA_BUF : SUSPEND_OK;
}

enum suspend_result swap_obstacle(const struct session *session)
{
    const struct session_memory *memory = session->memory;
    enum suspend_result result = SUSPEND_OK;
    const struct range *range;

    if (memory->allocations)
        return SUSPEND_ALLOCATIONS;
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

uint64_t swap_bytes(const struct session *session, unsigned device)
{
    return session->memory->device[device].swapped;
}

void swap_pool_bytes(const struct server *server, uint64_t *ret_locked, uint64_t *ret_used)
{
    *ret_locked = server->memory->swap_pool.bytes;
    *ret_used = server->memory->swap_pool.used;
}

bool swap_lock_ahead(struct server *server, const struct device *device, uint64_t unused)
{
    return swap_pool_lock_ahead(&server->memory->swap_pool, device, unused);
}

void swap_trim(struct server *server)
{
    swap_pool_trim(&server->memory->swap_pool);
}
