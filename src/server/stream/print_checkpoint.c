/* SPDX-License-Identifier: Apache-2.0 */
#include "print_checkpoint.h"

#include "cleanup.h"
#include "stream_state.h"

/* Places of a mark. Numbers of fences are never 0, and have 32 bits. */
#define PLACE_NONE UINT64_C(0)         /* all such kernels are known to be done */
#define PLACE_OPEN (UINT64_C(1) << 32) /* no fence is behind them */
/* Other values: the number of the fence. */

void print_checkpoint_open(struct stream *stream)
{
    stream->print_checkpoint = PLACE_OPEN;
}

void print_checkpoint_fence(struct stream *stream, uint32_t seq)
{
    if (stream->print_checkpoint == PLACE_OPEN)
        stream->print_checkpoint = seq;
}

/* A stream that its client has ended may have an event in place of the driver's stream. */
static bool is_idle(const struct stream *stream)
{
    CUresult result =
        stream->driver ? driver.cuStreamQuery(stream->driver) : driver.cuEventQuery(stream->order);

    return result != CUDA_ERROR_NOT_READY;
}

static bool is_reached(struct stream *stream)
{
    uint64_t place = stream->print_checkpoint;

    if (place == PLACE_NONE)
        return true;
    if (place == PLACE_OPEN ? !is_idle(stream) : !fence_word_reached(stream, (uint32_t)place))
        return false;
    stream->print_checkpoint = PLACE_NONE;
    return true;
}

static bool list_is_reached(struct list *streams, const struct device *device)
{
    bool reached = true;

    list_for_each (struct stream, stream, streams, link) {
        if (stream->device == device)
            reached &= is_reached(stream);
    }
    return reached;
}

bool print_checkpoints_are_reached(const struct session *session, const struct device *device)
{
    struct session_streams *streams = session->streams;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&streams->lock);
    bool reached = list_is_reached(session_device_streams(session, device), device);

    return list_is_reached(&streams->ended, device) && reached;
}
