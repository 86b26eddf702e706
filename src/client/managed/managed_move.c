/* SPDX-License-Identifier: Apache-2.0 */
/* Pages go up on the stream of managed_copy.c, which work that comes behind waits for. */
#include "managed_move.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "managed_area.h"
#include "managed_batch.h"
#include "managed_copy.h"
#include "managed_variable.h"
#include "page_watch.h"

static uint64_t address_of(const struct managed_block *block, struct residence_run run)
{
    return block->entry.address + (uint64_t)run.first * RESIDENCE_PAGE;
}

static uint64_t host_of(const struct managed_block *block, struct residence_run run)
{
    return block->host + (uint64_t)run.first * RESIDENCE_PAGE;
}

static uint64_t size_of(struct residence_run run)
{
    return (uint64_t)run.count * RESIDENCE_PAGE;
}

struct move_pages move_pages_of(const struct managed_block *block, struct residence_run run)
{
    return (struct move_pages){address_of(block, run), host_of(block, run), size_of(run),
                               block->of_variables};
}

static void copy_bytes_locked(struct managed_batch *batch, const struct move_pages *pages,
                              uint64_t at, uint64_t size, bool up)
{
    uint64_t host = pages->host + (at - pages->address);

    managed_batch_add_locked(batch, up ? at : host, up ? host : at, size);
}

/* Pages of variables hold other things of the driver's as well, and of other clients': these bytes
 * are neither known here nor written there. */
static void copy_pages_locked(struct managed_batch *batch, const struct move_pages *pages, bool up)
{
    uint64_t at = pages->address, end = at + pages->size, size;

    if (!pages->of_variables) {
        copy_bytes_locked(batch, pages, at, pages->size, up);
        return;
    }
    for (; managed_variables_next(&at, end, &size); at += size)
        copy_bytes_locked(batch, pages, at, size, up);
}

/* ---- up ---- */

/* Where pages are sent, which is found out when there are any: before work on a stream, or on the
 * stream of managed_copy.c (NULL). */
struct upload {
    struct stream *before;
    struct managed_batch batch;
};

/* What goes up on the stream of the work itself does so because that is the only one, and idle. */
static struct managed_batch *upload_batch(struct upload *upload)
{
    struct managed_batch *batch = &upload->batch;

    if (!batch->stream) {
        batch->stream = managed_stream_for_locked(upload->before);
        batch->together = batch->stream == upload->before && fence_orphans_passed();
    }
    return batch;
}

/* Work on other streams has to be told of it. */
static bool needs_event(const struct upload *upload)
{
    return upload->batch.stream && upload->batch.stream != upload->before;
}

static bool end_upload_locked(struct upload *upload)
{
    managed_batch_send_locked(&upload->batch);
    return needs_event(upload);
}

/* The stream of managed_copy.c does not wait for these copies by itself. */
static void note_direct_locked(struct managed_block *block, const struct upload *upload)
{
    if (!needs_event(upload) && list_empty(&block->direct_link))
        list_append(block_direct_locked(), &block->direct_link);
}

/* Pages are hidden first: a thread that writes meanwhile writes before that, or sleeps. */
static void give_to_device_locked(struct managed_block *block, struct residence_run run,
                                  struct upload *upload)
{
    struct residence_run at = {run.first, 0};

    if (run.count == 0)
        return;
    page_watch_hide(address_of(block, run), size_of(run));
    while (residence_next(&block->residence, run, PAGE_HOST, &at)) {
        struct move_pages pages = move_pages_of(block, at);

        copy_pages_locked(upload_batch(upload), &pages, true);
        note_direct_locked(block, upload);
    }
    residence_leave(&block->residence, run);
}

static void give_all_locked(struct managed_block *block, struct upload *upload)
{
    const struct residence *residence = &block->residence;
    struct residence_run shown = residence_shown(residence);

    give_to_device_locked(block, shown, upload);
    if (residence->has_new)
        residence_leave(&block->residence, (struct residence_run){0, residence->count});
    block_rest_locked(block);
}

bool move_up_for_locked(struct stream *stream)
{
    if (!block_any_active())
        return false;

    struct upload upload = {.before = stream};
    block_lock();
    list_for_each_safe (struct managed_block, block, block_active_locked(), link) {
        if (block_is_for_locked(block, stream))
            give_all_locked(block, &upload);
    }
    block_unlock();
    return end_upload_locked(&upload);
}

static void give_range_locked(struct managed_block *block, uint64_t address, uint64_t size,
                              struct upload *upload)
{
    struct residence_run run = block_pages(block, address, size);

    if (run.count == block->residence.count)
        give_all_locked(block, upload);
    else
        give_to_device_locked(block, run, upload);
}

static void move_up_locked(uint64_t address, uint64_t size)
{
    struct upload upload = {.before = NULL};

    block_lock();
    for_each_block_locked (block, address, size)
        give_range_locked(block, address, size, &upload);
    block_unlock();
    if (end_upload_locked(&upload))
        managed_sent_locked();
}

void move_up(uint64_t address, uint64_t size)
{
    channel_lock(&client->channel);
    move_up_locked(address, size);
    channel_unlock(&client->channel);
}

void move_up_for_variable_locked(uint64_t address, uint64_t size)
{
    move_up_locked(address, size);
    block_lock();
    for_each_block_locked (block, address, size)
        block->attach = CU_MEM_ATTACH_GLOBAL;
    block_unlock();
}

/* Of pages that the range only begins or ends in, the rest is kept. */
static void forget_locked(struct managed_block *block, uint64_t address, uint64_t size)
{
    uint64_t first = (address + RESIDENCE_PAGE - 1) & ~(uint64_t)(RESIDENCE_PAGE - 1);
    uint64_t end = address + size;
    struct residence_run run;

    if (end < block->allocation.address + block->allocation.size)
        end &= ~(uint64_t)(RESIDENCE_PAGE - 1);
    if (first < block->entry.address)
        first = block->entry.address;
    if (first >= end)
        return;
    run = block_pages(block, first, end - first);
    page_watch_hide(address_of(block, run), size_of(run));
    residence_leave(&block->residence, run);
}

void move_forget(uint64_t address, uint64_t size)
{
    block_lock();
    for_each_block_locked (block, address, size)
        forget_locked(block, address, size);
    block_unlock();
}

void move_settle_direct_locked(void)
{
    if (list_empty(block_direct_locked()))
        return;
    managed_follow_locked();
    list_for_each_safe (struct managed_block, block, block_direct_locked(), direct_link)
        list_remove(&block->direct_link);
}

/* ---- down ---- */

void move_fetch_locked(const struct managed_block *block, const struct move_pages *pages)
{
    if (!list_empty(&block->direct_link))
        move_settle_direct_locked();

    struct managed_batch batch = {.stream = managed_stream_for_locked(NULL)};
    copy_pages_locked(&batch, pages, false);
    managed_batch_send_locked(&batch);
}

/* A copy that has not run yet would overwrite what the program writes to a page meanwhile, so until
 * then no page of the device is shown. The fence of one stream tells nothing about another one. */
static bool arrives_on_other_locked(const struct managed_block *block, const struct stream *stream)
{
    return block->arrival.word != stream->word && !fence_passed(block->arrival);
}

/* Pages that an earlier prefetch brings down are copied once more. */
static void forget_arrival_locked(struct managed_block *block)
{
    struct residence_run shown = residence_shown(&block->residence), at = {shown.first, 0};

    while (residence_next(&block->residence, shown, PAGE_COMING, &at))
        residence_leave(&block->residence, at);
}

/* What is the program's already stays. True when there are copies. */
static bool bring_locked(struct managed_block *block, struct residence_run run,
                         struct managed_batch *batch)
{
    struct residence_run at = {run.first, 0};
    bool sent = false;

    while (residence_next(&block->residence, run, PAGE_DEVICE, &at)) {
        struct move_pages pages = move_pages_of(block, at);

        copy_pages_locked(batch, &pages, false);
        residence_come(&block->residence, at);
        sent = true;
    }
    if (sent)
        block_activate_locked(block);
    return sent;
}

/* Kernels on other streams may write to a block after it has been copied, so then it stays there
 * until it is touched. */
CUresult move_down(uint64_t address, uint64_t size, struct stream *stream)
{
    uint32_t seq = stream_begin_fenced(stream);
    struct managed_batch batch = {.stream = stream};
    bool sent = false;

    block_lock();
    for_each_block_locked (block, address, size) {
        if (use_in_flight_locked(&block->uses, stream) || arrives_on_other_locked(block, stream))
            continue;
        forget_arrival_locked(block);
        sent |= bring_locked(block, block_pages(block, address, size), &batch);
        block->arrival = stream_fence_at(stream, seq);
    }
    block_unlock();
    managed_batch_send_locked(&batch);
    managed_fence_on_locked(stream, seq);
    stream_end();
    return sent ? client_error() : CUDA_SUCCESS;
}

/* ---- down before a touch ---- */

/* A block of which so much is touched in turns is brought as a whole. */
#define AHEAD_PAGES 16u
/* As it is shown before it is touched, it is not known whether it will be; so after some turns the
 * program has to touch it again. */
#define AHEAD_TURNS 16u

void move_expect_locked(struct managed_block *block)
{
    if (block->residence.count <= AHEAD_PAGES)
        block_set_turns_locked(block, AHEAD_TURNS);
}

/* A thread that touches the block meanwhile waits for the stream. So it does anyway where a kernel
 * there was given the block, and the calling thread touches nothing while it waits. */
static bool may_wait_for_locked(const struct managed_block *block, const struct stream *stream)
{
    return block->thread == (int)syscall(SYS_gettid) || use_is_on_locked(&block->uses, stream);
}

static bool takes_turn_locked(struct managed_block *block, const struct stream *stream)
{
    if (!block_is_for_locked(block, stream) || arrives_on_other_locked(block, stream) ||
        !may_wait_for_locked(block, stream))
        return false;
    block_set_turns_locked(block, block->turns - 1);
    return block->turns > 0;
}

/* No other stream of the program's has work. */
static bool bring_ahead_locked(struct stream *stream)
{
    struct managed_batch batch = {.stream = stream, .together = true};
    bool sent = false;

    managed_follow_on_locked(stream);
    list_for_each_safe (struct managed_block, block, block_ahead_locked(), ahead_link) {
        struct residence_run all = {0, block->residence.count};

        if (!takes_turn_locked(block, stream) || !bring_locked(block, all, &batch))
            continue;
        block->arrival = stream_fence_at(stream, fence_next(stream->word));
        sent = true;
    }
    managed_batch_send_locked(&batch);
    return sent;
}

static void move_ahead_locked(struct stream *stream)
{
    struct stream *busy = stream_only_busy_locked();

    if (!busy || (stream && stream != busy))
        return;
    block_lock();
    if (bring_ahead_locked(busy))
        stream_send_fence_locked(busy);
    block_unlock();
}

void move_ahead(struct stream *stream)
{
    if (!block_any_ahead())
        return;
    pthread_mutex_lock(&client->lock);
    channel_lock(&client->channel);
    move_ahead_locked(stream);
    channel_unlock(&client->channel);
    pthread_mutex_unlock(&client->lock);
}

/* Pages that come for a touch are shown by the thread that serves it. */
static void show_block_locked(struct managed_block *block)
{
    struct residence_run run = residence_shown(&block->residence);

    if (!block->fetching && run.count && fence_passed(block->arrival) &&
        residence_arrived(&block->residence, run, true))
        page_watch_show(area_watch(), address_of(block, run), size_of(run), true);
}

void move_show_ahead(void)
{
    if (!block_any_ahead())
        return;
    block_lock();
    list_for_each (struct managed_block, block, block_ahead_locked(), ahead_link)
        show_block_locked(block);
    block_unlock();
}
