/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the client's streams are idle is known from their fences alone. */
#include "shared_copy_stream.h"

#include "copy_chunks.h"
#include "copy_state.h"
#include "fence.h"
#include "log.h"
#include "spare_events.h"

void shared_copy_stream_open(struct device *device)
{
    CUresult result = device_enter(device);

    if (result == CUDA_SUCCESS)
        result = driver.cuStreamCreateWithPriority(&device->copies->shared_stream,
                                                   CU_STREAM_NON_BLOCKING, 0);
    if (result != CUDA_SUCCESS)
        log_line("Device %d: there is no shared copy stream: %s", device->ordinal,
                 driver_error_name(result));
}

/* Whether the stream got no work since its last chunk was copied in the shared stream. */
static bool follows_shared_copy(const struct stream *stream)
{
    return stream->shared_copy_work && stream->work == stream->shared_copy_work;
}

bool shared_copy_stream_usable(const struct stream *stream)
{
    const struct session *session = stream->session;

    if (!stream->device->copies->shared_stream || !stream->driver || session->is_timed ||
        stream_is_confined(stream))
        return false;
    list_for_each (struct stream, other, session_device_streams(session, stream->device), link) {
        if (fence_pending(other) && !(other == stream && follows_shared_copy(other)))
            return false;
    }
    return true;
}

/* The wait refers to the current record, so the event can be reused at once. */
static CUresult wait_for_shared_copies(const struct stream *stream)
{
    CUevent event;
    CUresult result = spare_event_take(stream->device, &event);

    if (result != CUDA_SUCCESS)
        return result;
    result = driver.cuEventRecord(event, stream->device->copies->shared_stream);
    if (result == CUDA_SUCCESS)
        result = driver.cuStreamWaitEvent(stream->driver, event, 0);
    spare_event_keep(stream->device, event);
    return result;
}

/* If the stream cannot wait, the thread waits: memory must not be freed while it is copied. */
CUresult shared_copy_stream_copy(struct stream *stream, CUdeviceptr dst, CUdeviceptr src,
                                 uint64_t size)
{
    CUstream shared = stream->device->copies->shared_stream;
    CUresult result = copy_chunks(stream->session->window, dst, src, size, shared);
    CUresult waited = wait_for_shared_copies(stream);

    stream->shared_copy_work = stream->work + 1;
    if (waited != CUDA_SUCCESS)
        waited = driver.cuStreamSynchronize(shared);
    return result != CUDA_SUCCESS ? result : waited;
}
