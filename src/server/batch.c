/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch holds launches of one stream only, so their order among themselves and against all else
 * is what it would be without it.
 */
#include "batch.h"

#include <string.h>

#include "launch.h"
#include "objects.h"
#include "server.h"
#include "stream.h"

static bool is_plain(const struct session *session, const struct wire_cuLaunchKernelEx *in,
                     const struct function *function)
{
    return !session->server->no_batching && !in->attributes_size && !in->seq &&
           !function->module->prints && in->params_size >= function->params_size &&
           in->params_size <= BATCH_PARAMS_MAX;
}

bool batch_add(struct session *session, const struct wire_cuLaunchKernelEx *in,
               struct function *function, struct stream *stream)
{
    struct batch *batch = &session->batch;

    if (!is_plain(session, in, function))
        return false;
    if (batch->count == CHAIN_LENGTH_MAX || batch->stream != stream)
        batch_flush(session);

    struct launch *launch = &batch->launches[batch->count];
    *launch = launch_of(in, function);
    launch->params = memcpy(batch->params[batch->count], in->params, in->params_size);
    batch->stream = stream;
    batch->count++;
    return true;
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
    return true;
}
