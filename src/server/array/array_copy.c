/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of arrays. The server checks boxes itself, and does not rely on the driver's check. */
#include "array.h"
#include "copy.h"
#include "copy_chunks.h"
#include "cuda_array.h"
#include "memory.h"
#include "server_dispatch.h"
#include "stream.h"

static bool check_array(struct session *session, const char *call, const struct array *array,
                        const struct stream *stream, uint64_t x, uint64_t y, uint64_t z,
                        const CUDA_MEMCPY3D *copy)
{
    if (array->driver && array->device == stream->device &&
        cuda_array_contains(&array->descriptor, x, y, z, copy->WidthInBytes, copy->Height,
                            copy->Depth))
        return true;
    session_log_error(session, "%s: the box is not inside the array", call);
    return false;
}

static bool check_memory(struct session *session, const struct wire_fnArrayCopy *in)
{
    uint64_t span;

    if (copy_span(in->pitch, in->slice_rows, in->width, in->height, in->depth, &span) &&
        memory_covers(session, in->address, span))
        return true;
    session_log_error(session, "fnArrayCopy: the box at %#llx is not all the client's",
                      (unsigned long long)in->address);
    return false;
}

/* The driver checks the pitch even of a single row. */
static uint64_t at_least(uint64_t value, uint64_t least)
{
    return value < least ? least : value;
}

static CUDA_MEMCPY3D between(const struct wire_fnArrayCopy *in, CUarray array)
{
    const uint64_t pitch = in->height * in->depth > 1 ? in->pitch : at_least(in->pitch, in->width);
    const uint64_t rows = in->depth > 1 ? in->slice_rows : at_least(in->slice_rows, in->height);

    if (in->into)
        return (CUDA_MEMCPY3D){
            .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
            .srcDevice = in->address,
            .srcPitch = pitch,
            .srcHeight = rows,
            .dstMemoryType = CU_MEMORYTYPE_ARRAY,
            .dstArray = array,
            .dstXInBytes = in->x,
            .dstY = in->y,
            .dstZ = in->z,
            .WidthInBytes = in->width,
            .Height = in->height,
            .Depth = in->depth,
        };
    return (CUDA_MEMCPY3D){
        .srcMemoryType = CU_MEMORYTYPE_ARRAY,
        .srcArray = array,
        .srcXInBytes = in->x,
        .srcY = in->y,
        .srcZ = in->z,
        .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
        .dstDevice = in->address,
        .dstPitch = pitch,
        .dstHeight = rows,
        .WidthInBytes = in->width,
        .Height = in->height,
        .Depth = in->depth,
    };
}

/* An array counts as device memory. */
static enum copy_way way_of(const struct session *session, const CUDA_MEMCPY3D *copy)
{
    const struct window *window = session->window;

    if (copy->srcMemoryType == CU_MEMORYTYPE_ARRAY)
        return copy->dstMemoryType == CU_MEMORYTYPE_ARRAY
                   ? COPY_WITHIN
                   : copy_way_of(window, copy->dstDevice, window->base);
    return copy_way_of(window, window->base, copy->srcDevice);
}

static CUresult submit_copy(struct session *session, const CUDA_MEMCPY3D *copy, bool allowed,
                            struct stream *stream, uint32_t seq)
{
    CUresult result = allowed ? stream_begin_work(stream) : CUDA_ERROR_INVALID_VALUE;

    if (result == CUDA_SUCCESS && copy->WidthInBytes && copy->Height && copy->Depth) {
        result = copy_chunks_box(session->window, copy, stream->driver);
        stream_note_other_work(stream);
        copy_count(session, way_of(session, copy), copy->WidthInBytes * copy->Height * copy->Depth);
    }
    return stream_end_work(stream, seq, result);
}

CUresult serve_fnArrayCopy(struct session *session, const struct wire_fnArrayCopy *in,
                           struct array *array, struct stream *hStream)
{
    const CUDA_MEMCPY3D copy = between(in, array->driver);
    bool allowed =
        check_array(session, "fnArrayCopy", array, hStream, in->x, in->y, in->z, &copy) &&
        check_memory(session, in);

    return submit_copy(session, &copy, allowed, hStream, in->seq);
}

CUresult serve_cuMemcpyAtoA_v2(struct session *session, const struct wire_cuMemcpyAtoA_v2 *in,
                               struct array *dstArray, struct array *srcArray,
                               struct stream *hStream)
{
    const CUDA_MEMCPY3D copy = {
        .srcMemoryType = CU_MEMORYTYPE_ARRAY,
        .srcArray = srcArray->driver,
        .srcXInBytes = in->src_x,
        .srcY = in->src_y,
        .srcZ = in->src_z,
        .dstMemoryType = CU_MEMORYTYPE_ARRAY,
        .dstArray = dstArray->driver,
        .dstXInBytes = in->dst_x,
        .dstY = in->dst_y,
        .dstZ = in->dst_z,
        .WidthInBytes = in->width,
        .Height = in->height,
        .Depth = in->depth,
    };
    bool allowed = check_array(session, "cuMemcpyAtoA", dstArray, hStream, in->dst_x, in->dst_y,
                               in->dst_z, &copy) &&
                   check_array(session, "cuMemcpyAtoA", srcArray, hStream, in->src_x, in->src_y,
                               in->src_z, &copy);

    return submit_copy(session, &copy, allowed, hStream, in->seq);
}
