/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each copy is checked like a single copy. The copy kernel makes them only when it certainly
 * reaches both ends. A bad address, which a copy engine refuses, would fault in a kernel and end
 * the server.
 */
#include "copy_batch.h"

#include <string.h>

#include "copy.h"
#include "copy_chunks.h"
#include "copy_kernel.h"
#include "memory.h"
#include "stream.h"

struct batch {
    struct small_copy copies[SMALL_COPIES_MAX];
    unsigned count;
};

static struct small_copy copy_at(const struct wire_fnCopyBatch *in, unsigned index)
{
    struct small_copy copy;

    memcpy(&copy, (const char *)in->copies + index * sizeof(copy), sizeof(copy));
    return copy;
}

uint64_t copy_batch_bytes(const struct wire_fnCopyBatch *in)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < in->copies_size / sizeof(struct small_copy); i++)
        bytes += copy_at(in, i).size;
    return bytes;
}

static bool check_copy(struct session *session, const struct small_copy *copy)
{
    if (copy->size >= 1 && copy->size <= SMALL_COPY_MAX)
        return copy_check_ends(session, "fnCopyBatch", copy->dst, copy->src, copy->size);
    session_log_error(session, "fnCopyBatch: a copy of %llu bytes is not a small one",
                      (unsigned long long)copy->size);
    return false;
}

static bool check_size(struct session *session, uint32_t size)
{
    if (size && size % sizeof(struct small_copy) == 0 &&
        size / sizeof(struct small_copy) <= SMALL_COPIES_MAX)
        return true;
    session_log_error(session, "fnCopyBatch: %u bytes are not an array of small copies", size);
    return false;
}

static bool read_batch(struct session *session, const struct wire_fnCopyBatch *in,
                       struct batch *ret_batch)
{
    ret_batch->count = 0;
    if (!check_size(session, in->copies_size))
        return false;
    for (unsigned i = 0; i < in->copies_size / sizeof(struct small_copy); i++) {
        ret_batch->copies[i] = copy_at(in, i);
        if (!check_copy(session, &ret_batch->copies[i]))
            return false;
    }
    ret_batch->count = in->copies_size / sizeof(struct small_copy);
    return true;
}

static bool suits_kernel(const struct stream *stream, const struct batch *batch)
{
    if (!copy_kernel_is_loaded(stream->device))
        return false;
    for (unsigned i = 0; i < batch->count; i++) {
        const struct small_copy *copy = &batch->copies[i];

        if (!memory_is_reached(stream->session, stream->device, copy->dst, copy->size) ||
            !memory_is_reached(stream->session, stream->device, copy->src, copy->size))
            return false;
    }
    return true;
}

static CUresult copy_one_by_one(const struct stream *stream, const struct batch *batch)
{
    CUresult result = CUDA_SUCCESS;

    for (unsigned i = 0; i < batch->count && result == CUDA_SUCCESS; i++) {
        const struct small_copy *copy = &batch->copies[i];

        result =
            copy_chunks(stream->session->window, copy->dst, copy->src, copy->size, stream->driver);
    }
    return result;
}

/* The driver reports at once when it refuses a launch. */
static CUresult copy_all(const struct stream *stream, const struct batch *batch)
{
    if (suits_kernel(stream, batch) &&
        copy_kernel_launch(stream->device, batch->copies, batch->count, stream->driver) ==
            CUDA_SUCCESS)
        return CUDA_SUCCESS;
    return copy_one_by_one(stream, batch);
}

static void count_all(struct stream *stream, const struct batch *batch)
{
    stream_note_other_work(stream);
    for (unsigned i = 0; i < batch->count; i++) {
        const struct small_copy *copy = &batch->copies[i];

        copy_count(stream->session, copy_way_of(stream->session->window, copy->dst, copy->src),
                   copy->size);
    }
}

CUresult serve_fnCopyBatch(struct session *session, const struct wire_fnCopyBatch *in,
                           struct stream *hStream)
{
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    struct batch batch;

    if (read_batch(session, in, &batch))
        result = stream_begin_work(hStream);
    if (result == CUDA_SUCCESS)
        result = copy_all(hStream, &batch);
    count_all(hStream, &batch);
    return stream_end_work(hStream, in->seq, result);
}
