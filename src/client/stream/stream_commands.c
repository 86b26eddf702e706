/* SPDX-License-Identifier: Apache-2.0 */
/* See stream_commands.h. */
#include "stream_commands.h"

#include "managed_hooks.h"
#include "stream_group.h"
#include "wire_calls.h"

static void count_work(struct stream *stream)
{
    if (stream->kind == STREAM_BLOCKING)
        stream->last_work = ++stream->group->blocking_work;
}

/* Whether all that was put on the stream is known to be done. */
static bool is_idle(const struct stream *stream)
{
    return !stream->unfenced && fence_word_idle(stream->word);
}

/* A fence of the legacy stream covers the blocking streams, of which this is one. */
static bool legacy_covers(const struct stream *stream)
{
    const struct stream *legacy = stream->group->legacy;

    return !stream->context->share && legacy && stream->last_work <= legacy->work_covered &&
           fence_word_idle(legacy->word) && fence_word_idle(stream->word);
}

static bool is_covered(const struct stream *stream)
{
    return stream->kind == STREAM_BLOCKING && legacy_covers(stream);
}

static bool is_done(const struct stream *stream)
{
    return is_idle(stream) || is_covered(stream);
}

/* Work is about to be put on a stream that was idle: from here on it is busy. */
void stream_mark_work_locked(struct stream *stream)
{
    if (is_done(stream))
        stream->first_work = client->channel.sent;
}

bool stream_lost_work(const struct stream *stream, uint64_t read)
{
    return !is_done(stream) && stream->first_work < read;
}

static bool context_is_idle(const struct context *context)
{
    const struct stream *legacy = stream_group_of(context->device)->legacy;

    list_for_each (const struct stream, stream, &context->streams, link) {
        if (!is_done(stream))
            return false;
    }
    return !legacy || is_idle(legacy);
}

bool stream_all_idle_locked(void)
{
    list_for_each (const struct context, context, &client->contexts, link) {
        if (!context_is_idle(context))
            return false;
    }
    return fence_orphans_passed();
}

bool stream_is_done_locked(const struct stream *stream)
{
    return is_done(stream);
}

/* Takes a stream into account: false when it is the second one that is busy. */
static bool add_busy(struct stream *stream, struct stream **only)
{
    if (!stream || is_done(stream))
        return true;
    if (*only)
        return false;
    *only = stream;
    return true;
}

struct stream *stream_only_busy_locked(void)
{
    struct stream *only = NULL;

    list_for_each (struct context, context, &client->contexts, link) {
        list_for_each (struct stream, stream, &context->streams, link) {
            if (!add_busy(stream, &only))
                return NULL;
        }
    }
    for (int i = 0; i < client->device_count; i++)
        if (!add_busy(stream_group_of(&client->devices[i])->legacy, &only))
            return NULL;
    return fence_orphans_passed() ? only : NULL;
}

bool stream_is_sole_and_idle_locked(const struct stream *stream, unsigned own)
{
    const struct stream_group *group = stream->group;

    return stream == group->legacy && group->blocking_streams == 0 &&
           group->nonblocking_streams <= own && is_idle(stream);
}

void stream_begin(struct stream *stream)
{
    channel_lock(&client->channel);
    managed_push(stream);
    stream_mark_work_locked(stream);
    stream->unfenced = true;
    count_work(stream);
}

uint32_t stream_begin_fenced(struct stream *stream)
{
    channel_lock(&client->channel);
    managed_push(stream);
    stream_mark_work_locked(stream);
    stream->unfenced = false;
    stream->work_covered = stream->group->blocking_work;
    count_work(stream);
    return fence_issue(stream->word);
}

void stream_end(void)
{
    channel_unlock(&client->channel);
}

/* Work on the legacy stream waits for that of all blocking streams, and so does a fence on it. */
static bool needs_fence(const struct stream *stream)
{
    return (stream->unfenced && !is_covered(stream)) ||
           (stream->kind == STREAM_LEGACY && stream->work_covered != stream->group->blocking_work);
}

/* A fence is not a command in the sense of count_work(): no stream has to wait for it. */
CUresult stream_send_fence_locked(struct stream *stream)
{
    struct wire_fnFence in = {.hStream = stream->handle};

    stream_mark_work_locked(stream);
    in.seq = fence_issue(stream->word);
    stream->unfenced = false;
    stream->work_covered = stream->group->blocking_work;
    return wire_fnFence(&client->channel, &in);
}

CUresult stream_fence(struct stream *stream, struct fence *ret_fence)
{
    CUresult result = CUDA_SUCCESS;

    channel_lock(&client->channel);
    if (needs_fence(stream))
        result = stream_send_fence_locked(stream);
    *ret_fence = stream_fence_at(stream, fence_issued(stream->word));
    channel_unlock(&client->channel);
    return result;
}
