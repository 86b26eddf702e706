/* SPDX-License-Identifier: Apache-2.0 */
/* Who of the client's streams is at rest is told by their fences alone. */
#include "lane.h"

#include "copy_pieces.h"
#include "fence.h"
#include "log.h"
#include "share.h"
#include "spare_events.h"

void lane_open(struct device *device)
{
    CUresult result = device_enter(device);

    if (result == CUDA_SUCCESS)
        result = driver.cuStreamCreateWithPriority(&device->lane, CU_STREAM_NON_BLOCKING, 0);
    if (result != CUDA_SUCCESS)
        log_line("Device %d: all copies go up in streams of their own: %s", device->ordinal,
                 driver_error_name(result));
}

void lane_close(struct device *device)
{
    if (device->lane)
        driver.cuStreamDestroy_v2(device->lane);
    device->lane = NULL;
}

/* Nothing was put into it since its last piece went up in the lane. */
static bool follows_lane(const struct stream *stream)
{
    return stream->lane_work && stream->work == stream->lane_work;
}

bool lane_may_take(const struct stream *stream)
{
    const struct session *session = stream->session;

    if (!stream->device->lane || !stream->driver || stream->share->partition)
        return false;
    list_for_each(struct stream, other, &session->device[stream->device->ordinal].streams, link)
    {
        if (fence_pending(session, other->word) && !(other == stream && follows_lane(other)))
            return false;
    }
    return true;
}

/* The wait is for the record as it is now, so the event can be used again at once. */
static CUresult wait_for_lane(const struct stream *stream)
{
    CUevent event;
    CUresult result = spare_event_take(stream->device, &event);

    if (result != CUDA_SUCCESS)
        return result;
    result = driver.cuEventRecord(event, stream->device->lane);
    if (result == CUDA_SUCCESS)
        result = driver.cuStreamWaitEvent(stream->driver, event, 0);
    spare_event_keep(stream->device, event);
    return result;
}

/* Where the stream can not wait, the thread does: memory must not go while something goes up. */
CUresult lane_copy(struct stream *stream, CUdeviceptr dst, CUdeviceptr src, uint64_t size)
{
    CUstream lane = stream->device->lane;
    CUresult result = copy_pieces(stream->session->window, dst, src, size, lane);
    CUresult waited = wait_for_lane(stream);

    stream->lane_work = stream->work + 1;
    if (waited != CUDA_SUCCESS)
        waited = driver.cuStreamSynchronize(lane);
    return result != CUDA_SUCCESS ? result : waited;
}
