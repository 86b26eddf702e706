/* SPDX-License-Identifier: Apache-2.0 */
#include "swap_transfer.h"

#include <errno.h>
#include <stdlib.h>

#include "cleanup.h"
#include "device_granule.h"
#include "swap_copy.h"

/* One chunk at a time is on its way through `buffer`. */
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

static CUresult save_granule(struct session *session, struct granule *granule, void *context)
{
    struct file_transfer *transfer = context;
    CUresult result = swap_copy_begin(session, granule, 0);

    if (result != CUDA_SUCCESS)
        return result;
    granule->swapped->entry = (struct swap_entry){
        .address = granule->address, .size = granule->size, .offset = transfer->offset};
    transfer->offset += granule->size;
    result = swap_copy_give_file(granule->swapped, transfer->readable);
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
    CUresult result =
        error ? fail_file(transfer, error) : swap_for_each(session, false, save_granule, transfer);

    if (result != CUDA_SUCCESS)
        return result;
    error = swap_file_complete(transfer->fd, transfer->entries, transfer->count);
    return error ? fail_file(transfer, error) : CUDA_SUCCESS;
}

CUresult swap_save(struct session *session, int writable, int readable, int *ret_error)
{
    unsigned count = 0;

    swap_for_each(session, false, count_granule, &count);
    _cleanup_free_ struct swap_entry *entries = calloc(count + 1, sizeof(*entries));
    _cleanup_free_ unsigned char *buffer = malloc(SWAP_FILE_CHUNK);
    struct file_transfer transfer = {
        .fd = writable, .readable = readable, .buffer = buffer, .entries = entries};
    CUresult result =
        entries && buffer ? save_all(session, &transfer, count) : CUDA_ERROR_OUT_OF_MEMORY;
    *ret_error = transfer.error;
    return result;
}

/* ---- back from a file ---- */

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

CUresult swap_load(struct session *session, int *ret_error)
{
    struct swap_entry entry = {0};
    _cleanup_free_ unsigned char *buffer = malloc(SWAP_FILE_CHUNK);
    struct file_transfer transfer = {.fd = -1, .buffer = buffer, .entries = &entry};
    CUresult result =
        buffer ? swap_for_each(session, true, load_granule, &transfer) : CUDA_ERROR_OUT_OF_MEMORY;

    *ret_error = transfer.error;
    return result;
}
