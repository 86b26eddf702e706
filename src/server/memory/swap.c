/* SPDX-License-Identifier: Apache-2.0 */
/* See swap.h. All copies of a direction are in flight together; memory is released behind them. */
#include "swap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "device_granule.h"
#include "fd.h"
#include "memory_state.h"
#include "placement.h"
#include "swap_file.h"
#include "swap_pool.h"

/* The contents of a granule: in a file, or its segments in the pool. */
struct swap_copy {
    int fd; /* -1 = in the pool */
    struct swap_entry entry;
    unsigned count;
    uint64_t segments[];
};

static struct swap_pool *pool_of(const struct session *session)
{
    return &session->server->memory->swap_pool;
}

/* ---- a granule's copy ---- */

static uint64_t segment_size(const struct granule *granule, unsigned segment)
{
    uint64_t left = granule->size - segment * SWAP_CHUNK;

    return left < SWAP_CHUNK ? left : SWAP_CHUNK;
}

void swap_forget(struct session *session, struct granule *granule)
{
    struct swap_copy *copy = granule->swapped;

    for (unsigned i = 0; i < copy->count; i++)
        swap_pool_give(pool_of(session), copy->segments[i], segment_size(granule, i));
    session->memory->device[granule->part].swapped -= granule->size;
    granule->swapped = NULL;
    fd_close(&copy->fd);
    free(copy);
}

static CUresult begin_record(struct session *session, struct granule *granule, unsigned segments)
{
    struct swap_copy *copy = calloc(1, sizeof(*copy) + segments * sizeof(uint64_t));

    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    copy->fd = -1;
    granule->swapped = copy;
    session->memory->device[granule->part].swapped += granule->size;
    return CUDA_SUCCESS;
}

static CUresult take_segments(struct session *session, struct granule *granule, unsigned count)
{
    const struct device *device = session_device(session, granule->part);
    CUresult result = CUDA_SUCCESS;

    for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++) {
        result = swap_pool_take(pool_of(session), device, segment_size(granule, i),
                                &granule->swapped->segments[i]);
        granule->swapped->count += result == CUDA_SUCCESS;
    }
    return result;
}

static CUresult make_copy(struct session *session, struct granule *granule)
{
    unsigned count = (unsigned)((granule->size + SWAP_CHUNK - 1) / SWAP_CHUNK);

    CUresult result = begin_record(session, granule, count);

    if (result != CUDA_SUCCESS)
        return result;
    result = take_segments(session, granule, count);
    if (result != CUDA_SUCCESS)
        swap_forget(session, granule);
    return result;
}

/* ---- all of a client's ---- */

typedef CUresult granule_action(struct session *session, struct granule *granule, void *context);

/* Which granules: those with memory of their device, or those whose contents are in the pool. */
static bool is_wanted(const struct granule *granule, bool swapped)
{
    return granule->kind == GRANULE_DEVICE && !granule->on_host &&
           (granule->swapped != NULL) == swapped;
}

/* Until one fails, in the context of each device. */
static CUresult for_each_granule(struct session *session, bool swapped, granule_action *act,
                                 void *context)
{
    CUresult result = CUDA_SUCCESS;
    const struct range *range;

    for (uint64_t at = 0; result == CUDA_SUCCESS; at = range->start + 1) {
        range = ranges_next(&session->memory->extents, at);
        if (!range)
            break;
        struct granule *granule = range->value;
        if (!is_wanted(granule, swapped))
            continue;
        result = session_enter(session, session_device(session, granule->part));
        if (result == CUDA_SUCCESS)
            result = act(session, granule, context);
    }
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
                                      segment_size(granule, i), stream);
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
    CUresult result = for_each_granule(session, true, begin_copy, &streams);

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

/* ---- files ---- */

/* What goes through here is on its way between a device and a file. */
struct file_transfer {
    int fd, readable;
    unsigned char *buffer;
    struct swap_entry *entries;
    unsigned count;
    uint64_t offset;
    int error; /* of the file; or 0 */
};

static CUresult fail_file(struct file_transfer *transfer, int error)
{
    transfer->error = error;
    return CUDA_ERROR_OPERATING_SYSTEM;
}

static uint64_t file_chunk(const struct granule *granule, uint64_t done)
{
    uint64_t left = granule->size - done;

    return left < SWAP_FILE_CHUNK ? left : SWAP_FILE_CHUNK;
}

static CUresult copy_and_wait(CUdeviceptr dst, CUdeviceptr src, uint64_t size, CUstream stream)
{
    CUresult result = driver.cuMemcpyAsync(dst, src, size, stream);

    return result == CUDA_SUCCESS ? driver.cuStreamSynchronize(stream) : result;
}

typedef CUresult chunk_mover(struct file_transfer *transfer, const struct granule *granule,
                             uint64_t done, CUstream stream);

static CUresult move_chunks(struct session *session, struct file_transfer *transfer,
                            const struct granule *granule, chunk_mover *move)
{
    CUstream stream;
    CUresult result = driver.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0);

    if (result != CUDA_SUCCESS)
        return result;
    for (uint64_t done = 0; done < granule->size && result == CUDA_SUCCESS; done += SWAP_FILE_CHUNK)
        result =
            session->stop ? fail_file(transfer, -ECANCELED) : move(transfer, granule, done, stream);
    driver.cuStreamDestroy_v2(stream);
    session_check(session, result);
    return result;
}

/* ---- into a file ---- */

static CUresult save_chunk(struct file_transfer *transfer, const struct granule *granule,
                           uint64_t done, CUstream stream)
{
    uint64_t size = file_chunk(granule, done);
    CUresult result =
        copy_and_wait((uintptr_t)transfer->buffer, granule->address + done, size, stream);

    if (result != CUDA_SUCCESS)
        return result;
    int error =
        swap_file_write(transfer->fd, &granule->swapped->entry, done, transfer->buffer, size);
    return error ? fail_file(transfer, error) : CUDA_SUCCESS;
}

static CUresult give_file(struct swap_copy *copy, int fd)
{
    copy->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return copy->fd < 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

static CUresult save_granule(struct session *session, struct granule *granule, void *context)
{
    struct file_transfer *transfer = context;
    CUresult result = begin_record(session, granule, 0);

    if (result != CUDA_SUCCESS)
        return result;
    granule->swapped->entry = (struct swap_entry){
        .address = granule->address, .size = granule->size, .offset = transfer->offset};
    transfer->offset += granule->size;
    result = give_file(granule->swapped, transfer->readable);
    if (result == CUDA_SUCCESS)
        result = move_chunks(session, transfer, granule, save_chunk);
    transfer->entries[transfer->count++] = granule->swapped->entry;
    return result;
}

static CUresult count_granule(struct session *session, struct granule *granule, void *context)
{
    unsigned *count = context;

    ++*count;
    return CUDA_SUCCESS;
}

static CUresult save_all(struct session *session, struct file_transfer *transfer, unsigned count)
{
    int error = swap_file_begin(transfer->fd, count, &transfer->offset);
    CUresult result = error ? fail_file(transfer, error)
                            : for_each_granule(session, false, save_granule, transfer);

    if (result != CUDA_SUCCESS)
        return result;
    error = swap_file_complete(transfer->fd, transfer->entries, transfer->count);
    return error ? fail_file(transfer, error) : CUDA_SUCCESS;
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

static enum suspend_result end_saving(struct session *session, struct file_transfer *transfer,
                                      CUresult result)
{
    if (result == CUDA_SUCCESS)
        for_each_granule(session, true, withdraw_saved, NULL);
    else
        for_each_granule(session, true, forget_copy, NULL);
    return transfer->error ? result_of_file(session, transfer->error)
                           : result_of(session, result, SUSPEND_FAILED);
}

enum suspend_result swap_out_to_file(struct session *session, int writable, int readable)
{
    unsigned count = 0;

    for_each_granule(session, false, count_granule, &count);
    _cleanup_free_ struct swap_entry *entries = calloc(count + 1, sizeof(*entries));
    _cleanup_free_ unsigned char *buffer = malloc(SWAP_FILE_CHUNK);
    struct file_transfer transfer = {
        .fd = writable, .readable = readable, .buffer = buffer, .entries = entries};
    CUresult result =
        entries && buffer ? save_all(session, &transfer, count) : CUDA_ERROR_OUT_OF_MEMORY;
    return end_saving(session, &transfer, result);
}

enum suspend_result swap_out(struct session *session)
{
    CUresult result = for_each_granule(session, false, prepare_copy, NULL);

    if (result == CUDA_SUCCESS)
        result = copy_all(session, true);
    if (result == CUDA_SUCCESS)
        for_each_granule(session, true, withdraw_memory, NULL);
    else
        for_each_granule(session, true, forget_copy, NULL);
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

static CUresult load_chunk(struct file_transfer *transfer, const struct granule *granule,
                           uint64_t done, CUstream stream)
{
    const struct swap_copy *copy = granule->swapped;
    uint64_t size = file_chunk(granule, done);
    int error = swap_file_read(copy->fd, &copy->entry, done, transfer->buffer, size,
                               &transfer->entries->hash);

    return error
               ? fail_file(transfer, error)
               : copy_and_wait(granule->address + done, (uintptr_t)transfer->buffer, size, stream);
}

static CUresult load_granule(struct session *session, struct granule *granule, void *context)
{
    struct file_transfer *transfer = context;

    if (granule->swapped->fd < 0)
        return CUDA_SUCCESS;
    transfer->entries->hash = 0;
    CUresult result = move_chunks(session, transfer, granule, load_chunk);
    if (result == CUDA_SUCCESS && transfer->entries->hash != granule->swapped->entry.hash)
        return fail_file(transfer, -EBADMSG);
    return result;
}

static CUresult load_all(struct session *session, struct file_transfer *transfer)
{
    struct swap_entry entry = {0};
    _cleanup_free_ unsigned char *buffer = malloc(SWAP_FILE_CHUNK);

    if (!buffer)
        return CUDA_ERROR_OUT_OF_MEMORY;
    transfer->buffer = buffer;
    transfer->entries = &entry;
    return for_each_granule(session, true, load_granule, transfer);
}

static CUresult withdraw_restored(struct session *session, struct granule *granule, void *context)
{
    unsigned *restored = context;

    if (!*restored)
        return CUDA_ERROR_NOT_FOUND;
    --*restored;
    return withdraw_memory(session, granule, NULL);
}

/* What the client has of the file is old as soon as it goes on. */
static CUresult finish_return(struct session *session, struct granule *granule, void *context)
{
    device_granule_revoke(granule);
    swap_forget(session, granule);
    device_granule_keep_again(session, granule);
    return CUDA_SUCCESS;
}

enum suspend_result swap_in(struct session *session)
{
    struct file_transfer transfer = {.fd = -1};
    unsigned restored = 0;
    CUresult result = for_each_granule(session, true, restore_memory, &restored);

    if (result == CUDA_SUCCESS)
        result = copy_all(session, false);
    if (result == CUDA_SUCCESS)
        result = load_all(session, &transfer);
    if (result == CUDA_SUCCESS)
        for_each_granule(session, true, finish_return, NULL);
    else
        for_each_granule(session, true, withdraw_restored, &restored);
    return transfer.error ? result_of_file(session, transfer.error)
                          : result_of(session, result, SUSPEND_NO_MEMORY);
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
    CUresult result = begin_record(session, granule, 0);
    if (result != CUDA_SUCCESS)
        return result;
    granule->swapped->entry = entry;
    result = give_file(granule->swapped, fd);
    if (result != CUDA_SUCCESS)
        swap_forget(session, granule);
    return result;
}

/* ---- what others ask ---- */

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

void swap_trim(struct server *server)
{
    swap_pool_trim(&server->memory->swap_pool);
}
