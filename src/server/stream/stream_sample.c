/* SPDX-License-Identifier: Apache-2.0 */
/* The lock keeps the streams alive. It is only tried, so that no client waits for a sample. */
#include "stream_sample.h"

#include <stdatomic.h>

#include "fence.h"
#include "stream_state.h"

/* Partner: fence_expect_work(). */
static bool is_unfenced(const struct stream *stream)
{
    return atomic_load_explicit(&stream->in_flight->unfenced, memory_order_relaxed);
}

static bool is_idle(const struct stream *stream)
{
    return device_enter(stream->device) == CUDA_SUCCESS &&
           driver.cuStreamQuery(stream->driver) == CUDA_SUCCESS;
}

static void add_stream(const struct stream *stream, bool ask, struct streams_sample *sample)
{
    unsigned device = (unsigned)stream->device->ordinal;

    if (!stream->driver || !fence_pending(stream))
        return;
    bool unfenced = is_unfenced(stream);
    if (unfenced && ask && is_idle(stream))
        return;
    /* Partners: stream_note_kernel() and stream_note_other_work(). */
    uint64_t blocks = atomic_load_explicit(&stream->blocks, memory_order_relaxed);

    sample->is_uncertain |= unfenced;
    sample->has_kernels[device] |= blocks != 0;
    sample->has_other[device] |= blocks == 0;
    sample->blocks[device] += blocks;
}

bool streams_sample(const struct session *session, bool ask, struct streams_sample *ret_sample)
{
    struct session_streams *streams = session->streams;

    *ret_sample = (struct streams_sample){0};
    if (pthread_mutex_trylock(&streams->lock))
        return false;
    for (unsigned i = 0; i < session->server->devices.count; i++)
        list_for_each (struct stream, stream, &streams->of_device[i], link)
            add_stream(stream, ask, ret_sample);
    pthread_mutex_unlock(&streams->lock);
    return true;
}
