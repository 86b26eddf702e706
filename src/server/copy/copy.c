/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies and memsets. Every byte of every range must belong to the client, because the driver takes
 * an unknown address for memory of this process.
 */
#include "copy.h"

#include "copy_chunks.h"
#include "copy_fence.h"
#include "copy_state.h"
#include "memory.h"
#include "server_dispatch.h"
#include "shared_copy_stream.h"
#include "stream.h"
#include "window.h"

static bool check_range(struct session *session, const char *call, const char *argument,
                        uint64_t address, uint64_t size)
{
    if (memory_covers(session, address, size))
        return true;
    session_log_error(session, "%s: %s: %llu bytes at %#llx are not all the client's", call,
                      argument, (unsigned long long)size, (unsigned long long)address);
    return false;
}

bool copy_check_ends(struct session *session, const char *call, uint64_t dst, uint64_t src,
                     uint64_t size)
{
    return check_range(session, call, "dst", dst, size) &&
           check_range(session, call, "src", src, size);
}

bool copy_span(uint64_t pitch, uint64_t slice_rows, uint64_t width, uint64_t height, uint64_t depth,
               uint64_t *ret_span)
{
    uint64_t slice, slices, rows, span;

    if (!width || !height || !depth) {
        *ret_span = 0;
        return true;
    }
    if (__builtin_mul_overflow(pitch, slice_rows, &slice) ||
        __builtin_mul_overflow(slice, depth - 1, &slices) ||
        __builtin_mul_overflow(pitch, height - 1, &rows) ||
        __builtin_add_overflow(slices, rows, &span) || __builtin_add_overflow(span, width, &span))
        return false;
    *ret_span = span;
    return true;
}

static bool is_host(const struct window *window, uint64_t address)
{
    return address >= window->host_base &&
           address < window_part_end(window, window->devices->count);
}

enum copy_way copy_way_of(const struct window *window, uint64_t dst, uint64_t src)
{
    bool to_host = is_host(window, dst), from_host = is_host(window, src);

    if (to_host == from_host)
        return COPY_WITHIN;
    return to_host ? COPY_DOWN : COPY_UP;
}

/* Only the session's thread counts, so no atomic addition is needed. Partner:
 * copy_direction_bytes(). */
static void add_to_counter(atomic_uint_fast64_t *counter, uint64_t amount)
{
    uint64_t so_far = atomic_load_explicit(counter, memory_order_relaxed);

    atomic_store_explicit(counter, so_far + amount, memory_order_relaxed);
}

void copy_count(struct session *session, enum copy_way way, uint64_t bytes)
{
    add_to_counter(&session->copies->count, 1);
    add_to_counter(&session->copies->bytes[way], bytes);
}

static void count_addresses(struct stream *stream, uint64_t dst, uint64_t src, uint64_t bytes)
{
    stream_note_other_work(stream);
    copy_count(stream->session, copy_way_of(stream->session->window, dst, src), bytes);
}

CUresult serve_cuMemcpyAsync(struct session *session, const struct wire_cuMemcpyAsync *in,
                             struct stream *hStream)
{
    CUresult result = CUDA_ERROR_INVALID_VALUE;

    if (copy_check_ends(session, "cuMemcpyAsync", in->dst, in->src, in->ByteCount))
        result = stream_begin_work(hStream);
    if (result == CUDA_SUCCESS)
        result = copy_chunks(session->window, in->dst, in->src, in->ByteCount, hStream->driver);
    count_addresses(hStream, in->dst, in->src, in->ByteCount);
    return stream_end_work(hStream, in->seq, result);
}

CUresult serve_fnCopyUp(struct session *session, const struct wire_fnCopyUp *in,
                        struct stream *hStream)
{
    bool shared = shared_copy_stream_usable(hStream);
    CUresult result = CUDA_ERROR_INVALID_VALUE;

    if (copy_check_ends(session, "cuMemcpyHtoDAsync", in->dst, in->src, in->ByteCount))
        result = stream_begin_work(hStream);
    if (result == CUDA_SUCCESS && shared)
        result = shared_copy_stream_copy(hStream, in->dst, in->src, in->ByteCount);
    else if (result == CUDA_SUCCESS)
        result = copy_chunks(session->window, in->dst, in->src, in->ByteCount, hStream->driver);
    count_addresses(hStream, in->dst, in->src, in->ByteCount);
    return stream_end_by(hStream, in->seq, result, copy_fence_write);
}

CUresult serve_cuMemcpyHtoDAsync_v2(struct session *session,
                                    const struct wire_cuMemcpyHtoDAsync_v2 *in,
                                    struct stream *hStream)
{
    CUresult result = CUDA_ERROR_INVALID_VALUE;

    if (check_range(session, "cuMemcpyHtoDAsync", "dstDevice", in->dstDevice, in->data_size))
        result = stream_begin_work(hStream);
    /* The driver has copied pageable bytes when it returns, so the message may be reused. */
    if (result == CUDA_SUCCESS)
        result = copy_chunks_up(session->window, in->dstDevice, in->data, in->data_size,
                                hStream->driver);
    stream_note_other_work(hStream);
    copy_count(session, COPY_UP, in->data_size);
    return stream_end_work(hStream, in->seq, result);
}

/* The driver checks the pitch of a box of one row, and the height of a single slice, although
 * neither matters. */
static uint64_t at_least(uint64_t value, uint64_t least)
{
    return value < least ? least : value;
}

CUDA_MEMCPY3D copy_describe(const struct wire_cuMemcpy3DAsync_v2 *in)
{
    return (CUDA_MEMCPY3D){
        .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
        .srcDevice = in->src,
        .srcPitch =
            in->height > 1 || in->depth > 1 ? in->src_pitch : at_least(in->src_pitch, in->width),
        .srcHeight = in->depth > 1 ? in->src_height : at_least(in->src_height, in->height),
        .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
        .dstDevice = in->dst,
        .dstPitch =
            in->height > 1 || in->depth > 1 ? in->dst_pitch : at_least(in->dst_pitch, in->width),
        .dstHeight = in->depth > 1 ? in->dst_height : at_least(in->dst_height, in->height),
        .WidthInBytes = in->width,
        .Height = in->height,
        .Depth = in->depth,
    };
}

bool copy_check(struct session *session, const char *call, const CUDA_MEMCPY3D *box)
{
    uint64_t dst_span, src_span;

    if (!copy_span(box->dstPitch, box->dstHeight, box->WidthInBytes, box->Height, box->Depth,
                   &dst_span) ||
        !copy_span(box->srcPitch, box->srcHeight, box->WidthInBytes, box->Height, box->Depth,
                   &src_span)) {
        session_log_error(session, "%s: the box is larger than the address space", call);
        return false;
    }
    return check_range(session, call, "dst", box->dstDevice, dst_span) &&
           check_range(session, call, "src", box->srcDevice, src_span);
}

CUresult serve_cuMemcpy3DAsync_v2(struct session *session, const struct wire_cuMemcpy3DAsync_v2 *in,
                                  struct stream *hStream)
{
    CUDA_MEMCPY3D box = copy_describe(in);
    CUresult result = CUDA_ERROR_INVALID_VALUE;

    if (copy_check(session, "cuMemcpy3DAsync", &box))
        result = stream_begin_work(hStream);
    if (result == CUDA_SUCCESS && in->width && in->height && in->depth)
        result = copy_chunks_box(session->window, &box, hStream->driver);
    count_addresses(hStream, in->dst, in->src, in->width * in->height * in->depth);
    return stream_end_work(hStream, in->seq, result);
}

bool copy_check_memset(struct session *session, const char *call, const struct wire_fnMemset *in)
{
    uint64_t row, span;

    if (in->element_size != 1 && in->element_size != 2 && in->element_size != 4) {
        session_log_error(session, "%s: elements of %u bytes", call, in->element_size);
        return false;
    }
    if (__builtin_mul_overflow(in->width, (uint64_t)in->element_size, &row) ||
        !copy_span(in->pitch, 1, row, in->height, 1, &span)) {
        session_log_error(session, "%s: the area is larger than the address space", call);
        return false;
    }
    return check_range(session, call, "dst", in->dst, span);
}

CUresult copy_memset(const struct session *session, const struct wire_fnMemset *in,
                     struct stream *stream)
{
    CUresult result = stream_begin_work(stream);

    if (result == CUDA_SUCCESS)
        result = copy_chunks_memset(session->window, in, stream->driver);
    stream_note_other_work(stream);
    return stream_end_work(stream, in->seq, result);
}
