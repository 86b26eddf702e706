/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies managed variables between the program and the device. All copies go through one stream
 * that waits for no other work; work that comes behind a copy up waits for it by an event. Changes
 * are found by comparing, so a side that changes some bytes loses nothing when the other side
 * changes others.
 */
#include "managed_copy.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "cleanup.h"
#include "client_call.h"
#include "client_event.h"
#include "managed_batch.h"
#include "managed_move.h"
#include "managed_variable.h"
#include "recovery_hook.h"
#include "spin.h"
#include "stream_commands.h"
#include "three_way.h"
#include "wire_calls.h"

static struct copier {
    pthread_mutex_t pull_lock; /* of the thread that copies down, until it has merged the copy */
    struct stream *stream; /* made once and never destroyed; its fields under the channel lock */
    uint64_t event;        /* recorded behind the last copy up */
    uint64_t pushes;       /* under the channel lock: how often something went up */
    struct stream *direct; /* likewise: the program's stream on which something went up since */
    _Atomic uint64_t work,
        seen; /* atomic: commands that may have written, and how many of these have come down */
} copier;

void managed_copy_init(void)
{
    memset(&copier, 0, sizeof(copier));
    pthread_mutex_init(&copier.pull_lock, NULL);
}

CUresult managed_copy_prepare(struct device *device)
{
    _cleanup_mutex_ pthread_mutex_t *lock = call_mutex_hold(&copier.pull_lock);

    if (!copier.event)
        copier.event = event_create_own(device->primary);
    if (copier.event && !copier.stream)
        copier.stream = stream_create_own(device->primary);
    return copier.stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void managed_copy_count_work(void)
{
    atomic_fetch_add_explicit(&copier.work, 1, memory_order_acq_rel);
}

static bool is_settled(void)
{
    return atomic_load_explicit(&copier.work, memory_order_acquire) ==
           atomic_load_explicit(&copier.seen, memory_order_acquire);
}

/* ---- the commands; all with the channel lock ---- */

void managed_fence_on_locked(const struct stream *stream, uint32_t seq)
{
    struct wire_fnFence in = {.hStream = stream->handle, .seq = seq};

    wire_fnFence(&client->channel, &in);
}

struct fence managed_send_fence_locked(void)
{
    uint32_t seq;

    stream_mark_work_locked(copier.stream);
    seq = fence_issue(copier.stream->word);
    managed_fence_on_locked(copier.stream, seq);
    return stream_fence_at(copier.stream, seq);
}

static void record_on_locked(struct stream *stream)
{
    struct wire_cuEventRecordWithFlags in = {.hEvent = copier.event, .hStream = stream->handle};

    stream_mark_work_locked(stream);
    in.seq = fence_issue(stream->word);
    wire_cuEventRecordWithFlags(&client->channel, &in);
    copier.pushes++;
}

static void wait_locked(struct stream *stream)
{
    const struct wire_cuStreamWaitEvent in = {.hStream = stream->handle, .hEvent = copier.event};

    if (stream->managed_seen == copier.pushes)
        return;
    wire_cuStreamWaitEvent(&client->channel, &in);
    stream->managed_seen = copier.pushes;
}

/* Copies on the program's only stream need no event, until another stream comes. */
static void end_direct_locked(const struct stream *stream)
{
    if (!copier.direct || copier.direct == stream)
        return;
    record_on_locked(copier.direct);
    copier.direct->managed_seen = copier.pushes;
    copier.direct = NULL;
}

void managed_follow_on_locked(struct stream *stream)
{
    end_direct_locked(stream);
    wait_locked(stream);
}

void managed_follow_locked(void)
{
    end_direct_locked(NULL);
    wait_locked(copier.stream);
}

void managed_sent_locked(void)
{
    managed_follow_locked();
    record_on_locked(copier.stream);
    copier.stream->managed_seen = copier.pushes;
}

struct stream *managed_stream_for_locked(struct stream *stream)
{
    if (!stream || stream->device != copier.stream->device ||
        !stream_is_sole_and_idle_locked(stream, 1))
        return copier.stream;
    wait_locked(stream);
    copier.direct = stream;
    return stream;
}

static CUresult wait_for(struct fence fence)
{
    return fence_wait(fence, copier.stream->handle, FENCE_SPIN);
}

CUresult managed_wait_quietly(struct fence fence)
{
    const struct timespec pause = {0, 20000};
    struct spin spin = spin_begin();

    for (unsigned idle = 1; !fence_passed(fence); idle++) {
        if (recovery_error() != CUDA_SUCCESS)
            return client_error();
        if (spin_more(&spin))
            continue;
        nanosleep(&pause, NULL);
        if (idle % 1024 == 0)
            channel_alive(&client->channel);
    }
    return CUDA_SUCCESS;
}

/* ---- up ---- */

/* The bytes that are read here are sent: the program may be writing meanwhile. */
static void send_run(const struct managed_variable *variable, size_t start, size_t end,
                     struct managed_batch *batch)
{
    memcpy(variable->known + start, managed_here(variable) + start, end - start);
    managed_batch_add_locked(batch, variable->allocation.address + start,
                             (uintptr_t)variable->known + start, end - start);
}

/* Running kernels may be changing the bytes between two runs, so each run is sent by itself then.
 */
static bool send_changes(const struct managed_variable *variable, bool settled,
                         struct managed_batch *batch)
{
    const unsigned char *here = managed_here(variable);
    size_t size = variable->allocation.size, start, end = 0;
    bool sent = false;

    if (settled) {
        sent = three_way_span(here, variable->known, size, &start, &end);
        if (sent)
            send_run(variable, start, end, batch);
        return sent;
    }
    while (three_way_next(here, variable->known, size, end, &start, &end)) {
        send_run(variable, start, end, batch);
        sent = true;
    }
    return sent;
}

static bool push_variables(void)
{
    bool settled = is_settled(), sent = false;
    struct managed_batch batch = {.stream = copier.stream, .together = settled};

    managed_lock();
    for (struct managed_variable *at = managed_first_locked(); at; at = managed_next_locked(at))
        sent |= send_changes(at, settled, &batch);
    managed_unlock();
    managed_batch_send_locked(&batch);
    return sent;
}

void managed_copy_push(struct stream *stream)
{
    bool sent = managed_variable_any() && push_variables();

    if (move_up_for_locked(stream) || sent)
        managed_sent_locked();
    managed_follow_on_locked(stream);
}

/* Copies on a stream of the program count as well. */
static void wait_for_copies(void)
{
    struct fence fence;

    channel_lock(&client->channel);
    managed_follow_locked();
    fence = managed_send_fence_locked();
    channel_unlock(&client->channel);
    wait_for(fence);
}

void managed_copy_settle(void)
{
    if (client_error() == CUDA_SUCCESS)
        wait_for_copies();
}

/* ---- down ---- */

struct pull {
    struct fence fence;
    uint64_t work;
    bool all; /* nothing ran any more when it began */
};

static void copy_down_locked(const struct managed_variable *variable, struct managed_batch *batch)
{
    memcpy(variable->asked, variable->known, variable->allocation.size);
    managed_batch_add_locked(batch, (uintptr_t)variable->fetched, variable->allocation.address,
                             variable->allocation.size);
}

static void ask_for_all_locked(bool all_idle)
{
    struct managed_batch batch = {.stream = copier.stream, .together = all_idle};

    managed_lock();
    for (struct managed_variable *at = managed_first_locked(); at; at = managed_next_locked(at))
        copy_down_locked(at, &batch);
    managed_unlock();
    managed_batch_send_locked(&batch);
}

static struct pull begin_pull(void)
{
    struct pull pull = {.work = atomic_load_explicit(&copier.work, memory_order_acquire)};

    pthread_mutex_lock(&client->lock);
    channel_lock(&client->channel);
    pull.all = stream_all_idle_locked();
    ask_for_all_locked(pull.all);
    pull.fence = managed_send_fence_locked();
    channel_unlock(&client->channel);
    pthread_mutex_unlock(&client->lock);
    return pull;
}

static void merge_all(void)
{
    managed_lock();
    for (struct managed_variable *at = managed_first_locked(); at; at = managed_next_locked(at))
        three_way_merge(managed_here(at), at->known, at->asked, at->fetched, at->allocation.size);
    managed_unlock();
}

/* A thread that finds another one at it waits: the other may have begun before its work was done.
 */
static void pull_variables(void)
{
    _cleanup_mutex_ pthread_mutex_t *lock = call_mutex_hold(&copier.pull_lock);
    struct pull pull;

    if (is_settled())
        return;
    pull = begin_pull();
    if (wait_for(pull.fence) != CUDA_SUCCESS)
        return;
    merge_all();
    if (pull.all)
        atomic_store_explicit(&copier.seen, pull.work, memory_order_release);
}

void managed_copy_pull(void)
{
    move_show_prefetched();
    if (managed_variable_any())
        pull_variables();
}

CUresult managed_fetch(struct managed_variable *variable, bool fresh)
{
    struct managed_batch batch = {.stream = copier.stream};
    struct fence fence;
    CUresult result;

    channel_lock(&client->channel);
    copy_down_locked(variable, &batch);
    managed_batch_send_locked(&batch);
    fence = managed_send_fence_locked();
    channel_unlock(&client->channel);
    result = wait_for(fence);
    if (result != CUDA_SUCCESS)
        return result;
    memcpy(variable->known, variable->fetched, variable->allocation.size);
    if (fresh)
        memcpy(managed_here(variable), variable->fetched, variable->allocation.size);
    return CUDA_SUCCESS;
}
