/* SPDX-License-Identifier: Apache-2.0 */
/* A copy engine makes a single copy. */
#include "managed_batch.h"

#include "stream_commands.h"
#include "wire_calls.h"

static void send_alone_locked(struct stream *stream, const struct small_copy *copy)
{
    const struct wire_cuMemcpyAsync in = {
        .dst = copy->dst, .src = copy->src, .ByteCount = copy->size, .hStream = stream->handle};

    stream_mark_work_locked(stream);
    wire_cuMemcpyAsync(&client->channel, &in);
}

static void send_together_locked(const struct managed_batch *batch)
{
    const struct wire_fnCopyBatch in = {
        .hStream = batch->stream->handle,
        .copies = batch->copies,
        .copies_size = (uint32_t)(batch->count * sizeof(batch->copies[0])),
    };

    stream_mark_work_locked(batch->stream);
    wire_fnCopyBatch(&client->channel, &in);
}

void managed_batch_send_locked(struct managed_batch *batch)
{
    if (batch->count == 1)
        send_alone_locked(batch->stream, &batch->copies[0]);
    else if (batch->count)
        send_together_locked(batch);
    batch->count = 0;
}

void managed_batch_add_locked(struct managed_batch *batch, uint64_t dst, uint64_t src,
                              uint64_t size)
{
    const struct small_copy copy = {dst, src, size};

    if (!batch->together || size > SMALL_COPY_MAX) {
        send_alone_locked(batch->stream, &copy);
        return;
    }
    if (batch->count == SMALL_COPIES_MAX)
        managed_batch_send_locked(batch);
    batch->copies[batch->count++] = copy;
}
