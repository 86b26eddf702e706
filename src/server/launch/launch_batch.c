/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch holds launches of one stream only, so their order among themselves and with all other
 * work is the same as without it.
 */
#include "launch_batch.h"

#include <string.h>

#include "batch_pause.h"
#include "clock.h"
#include "context_hold.h"
#include "device_printf.h"
#include "fence.h"
#include "fence_kernel.h"
#include "function.h"
#include "launch.h"
#include "launch_record.h"
#include "launch_state.h"
#include "server_dispatch.h"
#include "stream.h"

/* For how long a fence is awaited. A client that waits for its launch sends the fence within half
 * of this. */
#define FENCE_AWAITED_NS 1000u

/* How often fences must have followed launches of a stream before launches wait for one, and the
 * cost of a wait in vain. A program that always waits late loses the time once in so many launches.
 */
#define FENCE_TRUST_MAX 8
#define FENCE_TRUST_LOST 16

/* A training that has made no launch for this time computes, or waits for something else. */
#define GATHERED_NS (300 * NS_PER_US)

/* Launches that come slowly are held for so long at most: the GPU may have nothing else to do. */
#define HELD_NS (1 * NS_PER_MS)

/* How often the path that seems slower is taken, to measure it again. */
#define PATH_PROBED_EVERY 64u

/* The kernel is given up for a path that is faster by more than one part in so many. The kernel
 * spares other clients a call under the driver's lock, and no client sees that in its own times. */
#define PATH_MARGIN 2

/* One part in so many of the average is replaced by a new time. The first time of the kernel
 * includes the creation of its graph and must not count for long. */
#define PATH_WEIGHT 2

static void measure_path(struct stream *stream)
{
    struct fence_path_probe *probe = &stream->launch->fence_path_probe;

    if (!probe->since || !fence_word_reached(stream, probe->seq))
        return;
    uint64_t took = clock_ns() - probe->since, *known = &probe->took_ns[probe->path];
    *known = *known ? *known - *known / PATH_WEIGHT + took / PATH_WEIGHT : took;
    probe->since = 0;
}

static void choose_path(struct stream *stream)
{
    struct fence_path_probe *probe = &stream->launch->fence_path_probe;

    measure_path(stream);
    uint64_t driver_takes = probe->took_ns[FENCE_BY_DRIVER];
    bool kernel = probe->took_ns[FENCE_BY_KERNEL] <= driver_takes + driver_takes / PATH_MARGIN;
    if (++probe->turn % PATH_PROBED_EVERY == 0)
        kernel = !kernel;
    probe->path = kernel ? FENCE_BY_KERNEL : FENCE_BY_DRIVER;
}

static __attribute__((noinline)) void begin_batch(struct launch_batch *batch, struct stream *stream)
{
    batch->most = (unsigned)stream->flow.control.batch;
    batch->uses = 0;
    batch->gathered = 0;
    choose_path(stream);
}

_Static_assert(FLOW_BATCH_MAX == GRAPH_BATCH_MAX, "a batch has room for all");

void launch_batch_add(struct session *session, const struct wire_cuLaunchKernelEx *in,
                      struct function *function, struct stream *stream)
{
    struct launch_batch *batch = &session->launch->batch;

    if (batch->count == batch->most || batch->stream != stream)
        launch_batch_flush(session);
    if (!batch->count)
        begin_batch(batch, stream);
    struct launch *launch = &batch->launches[batch->count];
    unsigned char *params = batch->params[batch->count];
    launch_read(launch, in, function);
    launch->params = params;
    batch->stream = stream;
    batch->uses |= function->uses;
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
    session->since_error++;
    session_async_failed(session, "cuLaunchKernelEx", result);
}

/* Partner: tell_of_training(). */
static bool gathers_launches(const struct session *session)
{
    return atomic_load_explicit(&session->gathers, memory_order_relaxed);
}

static void launch_all(struct session *session, struct stream *stream,
                       const struct launch *launches, unsigned count)
{
    /* A node of a graph runs in the context that it was created for, and not in its stream's. */
    bool alone = stream_is_confined(stream) || batch_pause_is_on(stream->device);
    unsigned done = 0;

    if (!alone && gathers_launches(session) &&
        graph_batches_launch_kept(&stream->launch->graph_batches, stream->driver, launches, count))
        return;
    while (done < count) {
        unsigned batched =
            alone ? 0
                  : graph_batches_launch(&stream->launch->graph_batches, stream->driver,
                                         &launches[done], count - done);
        if (!batched)
            launch_alone(session, stream, &launches[done++]);
        done += batched;
    }
}

bool launch_batch_awaits_fence(struct session *session)
{
    struct launch_batch *batch = &session->launch->batch;

    if (batch->count != 1 || batch->stream->launch->fence_trust <= 0 ||
        batch->stream->launch->fence_path_probe.path != FENCE_BY_KERNEL)
        return false;
    uint64_t now = clock_ns();
    if (!batch->since)
        batch->since = now;
    if (now - batch->since < FENCE_AWAITED_NS)
        return true;
    batch->stream->launch->fence_trust -= FENCE_TRUST_LOST;
    return false;
}

/* Partitions are excluded because a node does not follow its stream into one. */
static bool takes_fence_kernel(const struct stream *stream)
{
    return stream->device->launch->fence_kernel && !stream_is_confined(stream) &&
           !batch_pause_is_on(stream->device);
}

static void trust_more(struct stream *stream)
{
    if (takes_fence_kernel(stream) && stream->launch->fence_trust < FENCE_TRUST_MAX)
        stream->launch->fence_trust++;
}

/* Where kernels of several clients fill the device, the fence kernel would have to wait for space.
 * Such kernels take long enough for the cost of the driver's write not to matter. */
static bool fills_device(const struct stream *stream, const struct launch *launch)
{
    int sms = stream->device->record.attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT];
    uint64_t blocks =
        (uint64_t)launch->shape.grid[0] * launch->shape.grid[1] * launch->shape.grid[2];

    return blocks > (uint64_t)sms;
}

static bool launch_fenced(struct session *session, struct stream *stream,
                          const struct launch *launch, uint32_t seq)
{
    if (stream->launch->fence_path_probe.path != FENCE_BY_KERNEL || !takes_fence_kernel(stream) ||
        fills_device(stream, launch))
        return false;
    launch_record(session, 0, launch->function->handle, launch->function->name);
    return launch_begin(session, stream, launch, 1, launch->function->uses) == CUDA_SUCCESS &&
           fence_kernel_behind(stream, launch, seq);
}

/* Makes the launch that was set aside together with its fence: false when there is no such launch,
 * or when that needs two calls. */
static bool launch_with_fence(struct session *session, struct stream *stream, uint32_t seq)
{
    struct launch_batch *batch = &session->launch->batch;
    const struct launch *launch = &batch->launches[0];

    if (stream->launch->lone_work == stream->work)
        trust_more(stream);
    if (batch->count == 1 && batch->stream == stream)
        trust_more(stream);
    const uint64_t now = clock_ns();
    stream->launch->fence_path_probe.seq = seq;
    stream->launch->fence_path_probe.since =
        stream->launch->fence_path_probe.path == FENCE_BY_DRIVER ? now : 0;
    if (batch->count != 1 || batch->stream != stream ||
        !launch_fenced(session, stream, launch, seq))
        return false;
    stream->launch->fence_path_probe.since = now;
    batch->count = 0;
    launch_record(session, 1, launch->function->handle, launch->function->name);
    stream->work++;
    stream_count_more(stream, 1);
    fence_expect(stream, seq);
    return true;
}

/* Only this thread writes it, so this need not be one step. Partners: launch_lone_count() and
 * launch_fence_count(), whose readers expect that it never falls. */
static void count_one_more(atomic_uint_fast64_t *count)
{
    uint_fast64_t so_far = atomic_load_explicit(count, memory_order_relaxed);

    atomic_store_explicit(count, so_far + 1, memory_order_relaxed);
}

bool launch_batch_is_pending(const struct session *session)
{
    return session->launch->batch.count > 0;
}

/* There is at least one. */
static void make_launches(struct session *session)
{
    struct launch_batch *batch = &session->launch->batch;
    unsigned count = batch->count;

    batch->count = 0;
    const struct function *last = batch->launches[count - 1].function;
    launch_record(session, count, last->handle, last->name);

    CUresult result = launch_begin(session, batch->stream, batch->launches, count, batch->uses);
    if (result == CUDA_SUCCESS)
        launch_all(session, batch->stream, batch->launches, count);
    else
        session_async_failed(session, "cuLaunchKernelEx", result);
    stream_count_more(batch->stream, count - 1);
    stream_end_work(batch->stream, 0, result);
    if (count == 1)
        batch->stream->launch->lone_work = batch->stream->work;
}

/* Launches that come one by one count as such, though they are made together. */
static void note_gathered(struct session *session, uint64_t now)
{
    struct launch_batch *batch = &session->launch->batch;

    if (!batch->gathered)
        batch->held_since = now;
    if (batch->count == batch->gathered + 1)
        count_one_more(&session->launch->lone);
    batch->gathered = batch->count;
    batch->gathered_at = now;
}

/* `now` may be a little before the launches came. */
bool launch_batch_gathers(struct session *session, uint64_t now)
{
    struct launch_batch *batch = &session->launch->batch;

    if (!batch->count || batch->count >= batch->most || !gathers_launches(session))
        return false;
    if (batch->gathered != batch->count)
        note_gathered(session, now);
    return now < batch->gathered_at + GATHERED_NS && now < batch->held_since + HELD_NS;
}

bool launch_batch_flush(struct session *session)
{
    unsigned count = session->launch->batch.count;
    bool is_lone = count == 1 && !session->launch->batch.gathered;

    if (count)
        make_launches(session);
    if (is_lone)
        count_one_more(&session->launch->lone);
    return count > 0;
}

static CUresult write_fence(struct session *session, const struct wire_fnFence *in,
                            struct stream *hStream)
{
    if (launch_with_fence(session, hStream, in->seq))
        return CUDA_SUCCESS;
    if (launch_batch_is_pending(session))
        make_launches(session); /* the last one has a fence */
    return stream_end_work(hStream, in->seq, stream_begin_brief(hStream));
}

CUresult serve_fnFence(struct session *session, const struct wire_fnFence *in,
                       struct stream *hStream)
{
    CUresult result = write_fence(session, in, hStream);

    count_one_more(&session->launch->fences);
    if (result == CUDA_SUCCESS)
        context_hold_behind(hStream);
    return result;
}
