/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a copy is carried out. The calling thread makes a synchronous one when its turn in the stream
 * comes. A worker makes an asynchronous one, or the thread at once when it is short. Pageable
 * memory is read before an asynchronous call returns, and written before it returns, as CUDA
 * promises.
 */
#include "soft_copy.h"

#include <stdlib.h>
#include <string.h>

#include "array_calls.h"
#include "copy_prepare.h"
#include "soft_array.h"
#include "soft_context.h"
#include "soft_memory.h"
#include "soft_printf.h"
#include "soft_stream.h"

/* Shorter copies cost less than handing them to a thread. */
#define SHORT_COPY (16u << 10)

struct copy {
    struct operation operation;
    struct box box;
    void *staging;
};

void box_copy(const struct box *box)
{
    for (uint64_t z = 0; z < box->depth; z++) {
        uint64_t to = box->to.address + z * box->to.slice;
        uint64_t from = box->from.address + z * box->from.slice;

        for (uint64_t y = 0; y < box->height; y++)
            memmove((void *)(to + y * box->to.pitch), (void *)(from + y * box->from.pitch),
                    box->width);
    }
}

static uint64_t box_bytes(const struct box *box)
{
    return box->width * box->height * box->depth;
}

static bool copy_start_locked(struct operation *operation)
{
    struct copy *copy = (struct copy *)operation;

    if (box_bytes(&copy->box) > SHORT_COPY) {
        worker_submit_locked(operation);
        return false;
    }
    box_copy(&copy->box);
    return true;
}

static void copy_work(struct operation *operation)
{
    box_copy(&((struct copy *)operation)->box);
}

static void copy_fini(struct operation *operation)
{
    free(((struct copy *)operation)->staging);
}

static const struct operation_type copy_type = {
    .start_locked = copy_start_locked,
    .work = copy_work,
    .fini = copy_fini,
};

static bool turn_start_locked(struct operation *operation)
{
    schedule_changed_locked();
    return false;
}

/* The calling thread's turn in a stream. */
static const struct operation_type turn_type = {.start_locked = turn_start_locked};

static CUresult copy_in_turn_locked(struct stream *stream, const struct box *box)
{
    struct context *context = stream->context;
    struct operation *turn = operation_create(sizeof(*turn), &turn_type);

    if (!turn)
        return CUDA_ERROR_OUT_OF_MEMORY;
    schedule_enqueue_locked(stream, turn);
    operation_wait_running_locked(turn);
    if (turn->state == OPERATION_RUNNING) {
        pthread_mutex_unlock(&soft_lock);
        box_copy(box);
        pthread_mutex_lock(&soft_lock);
        operation_finish_locked(turn);
    }
    operation_unref_locked(turn);
    print_flush_locked(context->printer);
    return context->error;
}

/* Replaces the source by a copy of it, packed. */
static bool stage(struct copy *copy)
{
    struct box *box = &copy->box;
    struct box in = *box;

    copy->staging = malloc(box_bytes(box));
    if (!copy->staging)
        return false;
    in.to = (struct box_side){(uintptr_t)copy->staging, box->width, box->width * box->height};
    box_copy(&in);
    box->from = in.to;
    return true;
}

static CUresult copy_queued_locked(struct stream *stream, const struct box *box, bool staged)
{
    struct copy *copy = operation_create(sizeof(*copy), &copy_type);

    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    copy->box = *box;
    if (staged && !stage(copy)) {
        operation_unref_locked(&copy->operation);
        return copy_in_turn_locked(stream, box);
    }
    schedule_enqueue_locked(stream, &copy->operation);
    operation_unref_locked(&copy->operation);
    return CUDA_SUCCESS;
}

/* Bytes from the first to the last of one side: false when that does not fit into an address. */
static bool side_extent(const struct box *box, const struct box_side *side, uint64_t *ret_size)
{
    uint64_t rows, layers, size;

    if (__builtin_mul_overflow(side->pitch, box->height - 1, &rows) ||
        __builtin_mul_overflow(side->slice, box->depth - 1, &layers) ||
        __builtin_add_overflow(rows, layers, &size) ||
        __builtin_add_overflow(size, box->width, &size) || size > UINT64_MAX - side->address)
        return false;
    *ret_size = size;
    return true;
}

enum side_kind {
    SIDE_BAD,
    SIDE_PAGEABLE,
    SIDE_KNOWN_HOST,
    SIDE_DEVICE,
};

static enum side_kind side_kind_locked(const struct box *box, const struct box_side *side,
                                       enum box_place place)
{
    struct memory *memory = memory_find_locked(side->address);
    uint64_t size;

    if (place == PLACE_ARRAY)
        return SIDE_DEVICE;
    if (!side_extent(box, side, &size) || side->address == 0)
        return SIDE_BAD;
    if (!memory)
        return place == PLACE_DEVICE ? SIDE_BAD : SIDE_PAGEABLE;
    if (place != PLACE_HOST && !memory_covers_locked(side->address, size))
        return SIDE_BAD;
    return memory_is_host(memory) || memory_is_managed(memory) ? SIDE_KNOWN_HOST : SIDE_DEVICE;
}

/* The box with the sides that are arrays put where their memory is. */
static CUresult find_arrays_locked(const struct copy_request *request, struct box *box)
{
    CUresult result = CUDA_SUCCESS;

    if (request->to == PLACE_ARRAY)
        result = array_side_locked(request->to_part.array, request->to_part.at, box, &box->to);
    if (!result && request->from == PLACE_ARRAY)
        result =
            array_side_locked(request->from_part.array, request->from_part.at, box, &box->from);
    return result;
}

CUresult copy_prepare_locked(const struct copy_request *request, struct operation **ret_operation)
{
    struct box box = request->box;
    CUresult result = find_arrays_locked(request, &box);

    if (result)
        return result;
    if (box.width == 0 || box.height == 0 || box.depth == 0 ||
        side_kind_locked(&box, &box.to, request->to) == SIDE_BAD ||
        side_kind_locked(&box, &box.from, request->from) == SIDE_BAD)
        return CUDA_ERROR_INVALID_VALUE;
    struct copy *copy = operation_create(sizeof(*copy), &copy_type);
    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    copy->box = box;
    *ret_operation = &copy->operation;
    return CUDA_SUCCESS;
}

static CUmemorytype memory_type(enum box_place place)
{
    static const CUmemorytype types[] = {
        [PLACE_HOST] = CU_MEMORYTYPE_HOST,
        [PLACE_DEVICE] = CU_MEMORYTYPE_DEVICE,
        [PLACE_UNIFIED] = CU_MEMORYTYPE_UNIFIED,
        [PLACE_ARRAY] = CU_MEMORYTYPE_ARRAY,
    };

    return types[place];
}

static size_t rows_of(const struct box_side *side)
{
    return side->pitch ? side->slice / side->pitch : 0;
}

/* The request as a graph keeps it, which copy_request_fill() would read the same way. */
static CUresult capture_locked(const struct copy_request *request, struct stream *stream)
{
    const struct box *box = &request->box;
    const CUDA_MEMCPY3D copy = {
        .srcXInBytes = request->from_part.at[0],
        .srcY = request->from_part.at[1],
        .srcZ = request->from_part.at[2],
        .srcMemoryType = memory_type(request->from),
        .srcHost = (const void *)box->from.address,
        .srcDevice = box->from.address,
        .srcArray = request->from_part.array,
        .srcPitch = box->from.pitch,
        .srcHeight = rows_of(&box->from),
        .dstXInBytes = request->to_part.at[0],
        .dstY = request->to_part.at[1],
        .dstZ = request->to_part.at[2],
        .dstMemoryType = memory_type(request->to),
        .dstHost = (void *)box->to.address,
        .dstDevice = box->to.address,
        .dstArray = request->to_part.array,
        .dstPitch = box->to.pitch,
        .dstHeight = rows_of(&box->to),
        .WidthInBytes = box->width,
        .Height = box->height,
        .Depth = box->depth,
    };

    return capture_copy_locked(&stream->capture, &copy);
}

static CUresult copy_submit_locked(const struct copy_request *request)
{
    struct box box = request->box;
    struct stream *stream;
    CUresult result = stream_work_locked(request->stream, &stream);
    enum side_kind to, from;

    if (!result && !request->async)
        result = capture_unsafe_locked();
    if (!result && !request->async)
        result = capture_refuse_locked(&stream->capture);

    if (result || box.width == 0 || box.height == 0 || box.depth == 0)
        return result;
    if (capture_is_on(&stream->capture))
        return capture_locked(request, stream);
    result = find_arrays_locked(request, &box);
    if (result)
        return result;
    to = side_kind_locked(&box, &box.to, request->to);
    from = side_kind_locked(&box, &box.from, request->from);
    if (to == SIDE_BAD || from == SIDE_BAD)
        return CUDA_ERROR_INVALID_VALUE;
    if (to == SIDE_PAGEABLE || (!request->async && (to != SIDE_DEVICE || from != SIDE_DEVICE)))
        return copy_in_turn_locked(stream, &box);
    return copy_queued_locked(stream, &box, from == SIDE_PAGEABLE);
}

CUresult copy_submit(const struct copy_request *request)
{
    SOFT_LOCKED;

    return copy_submit_locked(request);
}
