/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch holds launches of one stream only, so their order among themselves and against all else
 * is what it would be without it.
 */
#include "batch.h"

#include <string.h>

#include "clock.h"
#include "fence.h"
#include "fence_kernel.h"
#include "launch.h"
#include "objects.h"
#include "server.h"
#include "stream.h"

/* A client that waits for its launch says so within half of this. */
#define FENCE_AWAITED_NS 1000u

/* What a stream must have shown before its fences are waited for, and what a vain wait costs it:
 * a program that always waits late pays for one launch in so many. */
#define FENCE_TRUST_MAX 8
#define FENCE_TRUST_LOST 16

/* So often the way that seems slower is taken, to see whether it still is. */
#define WAY_TRIED_EVERY 64u

/* The kernel is left for a way that is faster by more than one part in so many: it spares the other
 * clients a call under the driver's lock, which no client sees in its own times. */
#define WAY_MARGIN 2

/* One part in so many of what is known is replaced by a new time. The first one of the kernel has
 * the making of its graph in it and must not count for long. */
#define WAY_NEWS 2

static void learn_way(struct stream *stream)
{
    struct fence_ways *ways = &stream->ways;

    if (!ways->since || !fence_reached(stream, ways->seq))
        return;
    uint64_t took = clock_ns() - ways->since, *known = &ways->took_ns[ways->way];
    *known = *known ? *known - *known / WAY_NEWS + took / WAY_NEWS : took;
    ways->since = 0;
}

static void choose_way(struct stream *stream)
{
    struct fence_ways *ways = &stream->ways;

    learn_way(stream);
    uint64_t driver_takes = ways->took_ns[FENCE_BY_DRIVER];
    bool kernel = ways->took_ns[FENCE_BY_KERNEL] <= driver_takes + driver_takes / WAY_MARGIN;
    if (++ways->turn % WAY_TRIED_EVERY == 0)
        kernel = !kernel;
    ways->way = kernel ? FENCE_BY_KERNEL : FENCE_BY_DRIVER;
}

void batch_add(struct session *session, const struct wire_cuLaunchKernelEx *in,
               struct function *function, struct stream *stream)
{
    struct batch *batch = &session->batch;

    if (batch->count == CHAIN_LENGTH_MAX || batch->stream != stream)
        batch_flush(session);
    if (!batch->count)
        choose_way(stream);
    struct launch *launch = &batch->launches[batch->count];
    unsigned char *params = batch->params[batch->count];
    launch_read(launch, in, function);
    launch->params = params;
    batch->stream = stream;
    batch->since = 0;
    batch->count++;
    memcpy(params, in->params, in->params_size);
}

static void launch_alone(struct session *session, const struct stream *stream,
                         const struct launch *launch)
{
    CUresult result = launch_plain(launch, stream);

    if (result == CUDA_SUCCESS)
        return;
    session->complained = false;
    session_async_failed(session, "cuLaunchKernelEx", result);
}

static void launch_all(struct session *session, struct stream *stream,
                       const struct launch *launches, unsigned count)
{
    /* A node of a graph runs in the context that it was made for, and not where its stream does. */
    bool confined = stream->share->partition != NULL;
    unsigned done = 0;

    while (done < count) {
        unsigned chained = confined ? 0
                                    : chains_launch(&stream->chains, stream->driver,
                                                    &launches[done], count - done);
        if (!chained)
            launch_alone(session, stream, &launches[done++]);
        done += chained;
    }
}

bool batch_awaits_fence(struct session *session)
{
    struct batch *batch = &session->batch;

    if (batch->count != 1 || batch->stream->fence_trust <= 0 ||
        batch->stream->ways.way != FENCE_BY_KERNEL)
        return false;
    uint64_t now = clock_ns();
    if (!batch->since)
        batch->since = now;
    if (now - batch->since < FENCE_AWAITED_NS)
        return true;
    batch->stream->fence_trust -= FENCE_TRUST_LOST;
    return false;
}

/* Partitions for the reason above; and fences of clients that print are not the GPU's to write. */
static bool takes_fence_kernel(const struct stream *stream)
{
    return stream->device->fence_kernel && !stream->share->partition &&
           !stream->session->prints.active;
}

static void trust_more(struct stream *stream)
{
    if (takes_fence_kernel(stream) && stream->fence_trust < FENCE_TRUST_MAX)
        stream->fence_trust++;
}

/* Where kernels of several clients fill the device, one of ours would have to wait for room. Such
 * kernels take long enough for the driver's own way not to matter. */
static bool fills_device(const struct stream *stream, const struct launch *launch)
{
    int sms = stream->device->record.attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT];
    uint64_t blocks =
        (uint64_t)launch->shape.grid[0] * launch->shape.grid[1] * launch->shape.grid[2];

    return blocks > (uint64_t)sms;
}

static bool launch_fenced(struct stream *stream, const struct launch *launch, uint32_t seq)
{
    if (stream->ways.way != FENCE_BY_KERNEL || !takes_fence_kernel(stream) ||
        fills_device(stream, launch))
        return false;
    session_launched(stream->session, 0, launch->function->handle, launch->function->name);
    return stream_begin(stream) == CUDA_SUCCESS && fence_kernel_behind(stream, launch, seq);
}

bool batch_fence(struct session *session, struct stream *stream, uint32_t seq)
{
    struct batch *batch = &session->batch;
    const struct launch *launch = &batch->launches[0];

    if (stream->lone_work == stream->work)
        trust_more(stream);
    if (batch->count == 1 && batch->stream == stream)
        trust_more(stream);
    const uint64_t now = clock_ns();
    stream->ways.seq = seq;
    stream->ways.since = stream->ways.way == FENCE_BY_DRIVER ? now : 0;
    if (batch->count != 1 || batch->stream != stream || !launch_fenced(stream, launch, seq))
        return false;
    stream->ways.since = now;
    batch->count = 0;
    session_launched(session, 1, launch->function->handle, launch->function->name);
    stream->work++;
    fence_note(stream, seq);
    return true;
}

bool batch_flush(struct session *session)
{
    struct batch *batch = &session->batch;
    unsigned count = batch->count;

    if (!count)
        return false;
    batch->count = 0;
    const struct function *last = batch->launches[count - 1].function;
    session_launched(session, count, last->handle, last->name);

    CUresult result = stream_begin(batch->stream);
    if (result == CUDA_SUCCESS)
        launch_all(session, batch->stream, batch->launches, count);
    else
        session_async_failed(session, "cuLaunchKernelEx", result);
    stream_end(batch->stream, 0, result);
    if (count == 1)
        batch->stream->lone_work = batch->stream->work;
    return true;
}
