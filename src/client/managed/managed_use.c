/* SPDX-License-Identifier: Apache-2.0 */
#include "managed_use.h"

#include <stdlib.h>
#include <string.h>

#include "managed_allocation.h"
#include "managed_move.h"
#include "managed_variable.h"
#include "stream_commands.h"
#include "wire_calls.h"

/* For allocations that are in use on more streams than they tell apart. It has the last launch on
 * each stream that was given anything managed, by fence word. Under the lock of allocations. */
static struct {
    struct use *by_word;
    uint32_t end; /* words from here on have none */
} latest;

void use_init(void)
{
    free(latest.by_word);
    latest.by_word = NULL;
    latest.end = 0;
}

bool use_prepare(void)
{
    if (!latest.by_word)
        latest.by_word = calloc(client->fence_count, sizeof(*latest.by_word));
    return latest.by_word != NULL;
}

/* ---- noting ---- */

/* The place of the stream, since a launch ends later than earlier ones, or a free place, or NULL.
 */
static struct use *place_for(struct managed_uses *uses, uint32_t word)
{
    struct use *place = NULL;

    for (struct use *at = uses->last; at < uses->last + USE_STREAMS; at++) {
        if (at->stream && at->fence.word == word)
            return at;
        if (!at->stream || fence_passed(at->fence))
            place = at;
    }
    return place;
}

static void note_locked(struct managed_uses *uses, const struct use *use)
{
    struct use *place = place_for(uses, use->fence.word);

    if (place)
        *place = *use;
    else
        uses->by_more = true;
}

static void note_latest_locked(const struct use *use)
{
    latest.by_word[use->fence.word] = *use;
    if (latest.end <= use->fence.word)
        latest.end = use->fence.word + 1;
}

struct pointers {
    const struct stream *stream;
    const char *params;
    size_t size, at;
};

/* The next allocation that they point into and that is for work on the stream, or NULL. */
static struct managed_allocation *next_managed_locked(struct pointers *pointers)
{
    struct managed_allocation *managed;
    uint64_t word;

    while (pointers->at + sizeof(word) <= pointers->size) {
        memcpy(&word, pointers->params + pointers->at, sizeof(word));
        pointers->at += sizeof(word);
        managed = managed_at_locked(word);
        if (managed && managed_is_for_locked(managed, pointers->stream))
            return managed;
    }
    return NULL;
}

/* Memory of the kernel is not fetched before its end. */
static void announce_locked(struct pointers pointers)
{
    struct managed_allocation *managed;

    if (list_empty(managed_direct_locked()))
        return;
    while ((managed = next_managed_locked(&pointers)))
        list_remove(&managed->direct_link);
}

void use_announce(const struct stream *stream, const void *params, size_t size)
{
    managed_allocations_lock();
    announce_locked((struct pointers){stream, params, size, 0});
    managed_allocations_unlock();
}

static void note_all_locked(struct pointers pointers)
{
    const struct stream *stream = pointers.stream;
    const struct use use = {stream->handle, stream_fence_at(stream, fence_next(stream->word))};
    struct managed_allocation *managed;

    while ((managed = next_managed_locked(&pointers))) {
        note_locked(&managed->uses, &use);
        note_latest_locked(&use);
    }
}

/* Settling may issue a number of the stream's fences, and the next one is that of the kernel. */
void use_note(const struct stream *stream, const void *params, size_t size)
{
    const struct pointers pointers = {stream, params, size, 0};

    managed_allocations_lock();
    announce_locked(pointers);
    move_settle_direct_locked();
    note_all_locked(pointers);
    managed_allocations_unlock();
}

/* ---- asking ---- */

static bool is_sent(struct fence fence)
{
    return fence_reached(fence_issued(fence.word), fence.seq);
}

/* A stream that has ended has a fence behind all its work, and takes the channel lock before its
 * memory is freed. */
static bool is_in_flight_locked(const struct use *use)
{
    struct stream *stream;

    if (!use->stream || fence_passed(use->fence))
        return false;
    stream = handles_get(&client->handles, WIRE_STREAM, use->stream);
    if (!stream)
        return true;
    if (stream_is_done_locked(stream))
        return false;
    if (!is_sent(use->fence))
        stream_send_fence_locked(stream);
    return true;
}

bool use_is_on_locked(const struct managed_uses *uses, const struct stream *stream)
{
    for (const struct use *use = uses->last; use < uses->last + USE_STREAMS; use++)
        if (use->stream == stream->handle && !fence_passed(use->fence))
            return true;
    return false;
}

static bool any_in_flight_locked(const struct use *uses, uint32_t count, const struct stream *but)
{
    bool any = false;

    for (uint32_t i = 0; i < count; i++)
        if (!but || uses[i].stream != but->handle)
            any |= is_in_flight_locked(&uses[i]);
    return any;
}

bool use_in_flight_locked(struct managed_uses *uses, const struct stream *but)
{
    bool any = any_in_flight_locked(uses->last, USE_STREAMS, but);

    if (uses->by_more)
        uses->by_more = any_in_flight_locked(latest.by_word, latest.end, NULL);
    return any || uses->by_more;
}
