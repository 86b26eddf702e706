/* SPDX-License-Identifier: Apache-2.0 */
/* See stream_order.h. */
#include "stream_order.h"

#include "fence.h"
#include "sm_share.h"
#include "stream_state.h"

CUresult stream_order_record(struct stream *stream)
{
    if (stream->order && stream->ordered_work == stream->work)
        return CUDA_SUCCESS;

    CUresult result = CUDA_SUCCESS;
    if (!stream->order)
        result = driver.cuEventCreate(&stream->order, CU_EVENT_DISABLE_TIMING);
    if (result == CUDA_SUCCESS)
        result = driver.cuEventRecord(stream->order, stream->driver);
    if (result == CUDA_SUCCESS)
        stream->ordered_work = stream->work;
    return result;
}

/* What `stream` is given from now on begins behind all that `other` was given so far. */
static CUresult stream_follow(const struct stream *stream, struct stream *other)
{
    CUresult result = stream_order_record(other);

    if (result == CUDA_SUCCESS)
        result = driver.cuStreamWaitEvent(stream->driver, other->order, 0);
    return result;
}

static CUresult legacy_follow_blocking(const struct stream *legacy, struct stream *stream)
{
    if (!stream->blocking || !stream->driver || stream->seen_by_legacy == stream->work)
        return CUDA_SUCCESS;

    CUresult result = stream_follow(legacy, stream);
    if (result == CUDA_SUCCESS)
        stream->seen_by_legacy = stream->work;
    return result;
}

static CUresult legacy_follow_all(const struct stream *legacy)
{
    const struct list *beside = &legacy->session->streams->of_device[legacy->device->ordinal];

    list_for_each (struct stream, stream, beside, link) {
        if (stream->sm_share != legacy->sm_share)
            continue;
        CUresult result = legacy_follow_blocking(legacy, stream);
        if (result != CUDA_SUCCESS)
            return result;
    }
    return CUDA_SUCCESS;
}

static CUresult blocking_follow_legacy(struct stream *stream)
{
    struct stream *legacy = stream->sm_share->legacy;

    if (!legacy || !legacy->driver || stream->legacy_seen == legacy->work)
        return CUDA_SUCCESS;

    CUresult result = stream_follow(stream, legacy);
    if (result == CUDA_SUCCESS)
        stream->legacy_seen = legacy->work;
    return result;
}

/* The search is for blocking streams. A PyTorch program has none, and 32 others. */
static CUresult follow_others(struct stream *stream)
{
    if (stream->legacy)
        return stream->sm_share->blocking_streams ? legacy_follow_all(stream) : CUDA_SUCCESS;
    return stream->blocking ? blocking_follow_legacy(stream) : CUDA_SUCCESS;
}

static CUresult enter_context(const struct stream *stream)
{
    return stream->driver ? session_enter(stream->session, stream->device)
                          : CUDA_ERROR_INVALID_HANDLE;
}

/* A fault may be noticed before stream_end_work(), so the work is announced here. */
CUresult stream_begin_brief(struct stream *stream)
{
    CUresult result = enter_context(stream);

    if (result != CUDA_SUCCESS)
        return result;
    fence_expect_work(stream);
    return follow_others(stream);
}

CUresult stream_begin_work(struct stream *stream)
{
    CUresult result = enter_context(stream);

    if (result != CUDA_SUCCESS)
        return result;
    if (stream->flow.control.left <= 0)
        stream_flow_step(stream);
    fence_expect_work(stream);
    return follow_others(stream);
}

CUresult stream_order_end(struct stream *stream)
{
    const struct stream *legacy = stream->sm_share->legacy;

    if (!legacy || !legacy->driver || !stream->driver)
        return CUDA_SUCCESS;
    return legacy_follow_blocking(legacy, stream);
}
