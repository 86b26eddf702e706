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
#include "stream_commands.h"

static uint64_t address_of(const struct managed_allocation *managed, struct residence_run run)
{
    return managed->entry.address + (uint64_t)run.first * RESIDENCE_PAGE;
}

static uint64_t host_of(const struct managed_allocation *managed, struct residence_run run)
{
    return managed->host + (uint64_t)run.first * RESIDENCE_PAGE;
}

static uint64_t size_of(struct residence_run run)
{
    return (uint64_t)run.count * RESIDENCE_PAGE;
}

struct move_pages move_pages_of(const struct managed_allocation *managed, struct residence_run run)
{
    return (struct move_pages){address_of(managed, run), host_of(managed, run), size_of(run),
                               managed->of_variables};
}

static void copy_bytes_locked(struct managed_batch *batch, const struct move_pages *pages,
                              uint64_t at, uint64_t size, bool up)
{
    uint64_t host = pages->host + (at - pages->address);

    managed_batch_add_locked(batch, up ? at : host, up ? host : at, size);
}

/* Pages of variables contain other bytes of the driver and of other clients. The client neither
 * knows nor writes these. */
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

/* Copies on the stream of the work itself: that is the only stream, and idle. */
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
static void note_direct_locked(struct managed_allocation *managed, const struct upload *upload)
{
    if (!needs_event(upload) && list_empty(&managed->direct_link))
        list_append(managed_direct_locked(), &managed->direct_link);
}

/* Pages are hidden first: a thread that writes meanwhile writes before that, or sleeps. */
static void give_to_device_locked(struct managed_allocation *managed, struct residence_run run,
                                  struct upload *upload)
{
    struct residence_run at = {run.first, 0};

    if (run.count == 0)
        return;
    page_watch_hide(address_of(managed, run), size_of(run));
    while (residence_next(&managed->residence, run, PAGE_HOST, &at)) {
        struct move_pages pages = move_pages_of(managed, at);

        copy_pages_locked(upload_batch(upload), &pages, true);
        note_direct_locked(managed, upload);
    }
    residence_leave(&managed->residence, run);
}

static void give_all_locked(struct managed_allocation *managed, struct upload *upload)
{
    const struct residence *residence = &managed->residence;
    struct residence_run shown = residence_shown(residence);

    give_to_device_locked(managed, shown, upload);
    if (residence->has_new)
        residence_leave(&managed->residence, (struct residence_run){0, residence->count});
    managed_deactivate_locked(managed);
}

bool move_up_for_locked(struct stream *stream)
{
    if (!managed_any_active())
        return false;

    struct upload upload = {.before = stream};
    managed_allocations_lock();
    list_for_each_safe (struct managed_allocation, managed, managed_active_locked(), link) {
        if (managed_is_for_locked(managed, stream))
            give_all_locked(managed, &upload);
    }
    managed_allocations_unlock();
    return end_upload_locked(&upload);
}

static void give_range_locked(struct managed_allocation *managed, uint64_t address, uint64_t size,
                              struct upload *upload)
{
    struct residence_run run = managed_run_of(managed, address, size);

    if (run.count == managed->residence.count)
        give_all_locked(managed, upload);
    else
        give_to_device_locked(managed, run, upload);
}

static void move_up_locked(uint64_t address, uint64_t size)
{
    struct upload upload = {.before = NULL};

    managed_allocations_lock();
    for_each_managed_locked (managed, address, size)
        give_range_locked(managed, address, size, &upload);
    managed_allocations_unlock();
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
    managed_allocations_lock();
    for_each_managed_locked (managed, address, size)
        managed->attach = CU_MEM_ATTACH_GLOBAL;
    managed_allocations_unlock();
}

/* Of pages that the range only begins or ends in, the rest is kept. */
static void forget_locked(struct managed_allocation *managed, uint64_t address, uint64_t size)
{
    uint64_t first = (address + RESIDENCE_PAGE - 1) & ~(uint64_t)(RESIDENCE_PAGE - 1);
    uint64_t end = address + size;
    struct residence_run run;

    if (end < managed->allocation.address + managed->allocation.size)
        end &= ~(uint64_t)(RESIDENCE_PAGE - 1);
    if (first < managed->entry.address)
        first = managed->entry.address;
    if (first >= end)
        return;
    run = managed_run_of(managed, first, end - first);
    page_watch_hide(address_of(managed, run), size_of(run));
    residence_leave(&managed->residence, run);
}

void move_forget(uint64_t address, uint64_t size)
{
    managed_allocations_lock();
    for_each_managed_locked (managed, address, size)
        forget_locked(managed, address, size);
    managed_allocations_unlock();
}

void move_settle_direct_locked(void)
{
    if (list_empty(managed_direct_locked()))
        return;
    managed_follow_locked();
    list_for_each_safe (struct managed_allocation, managed, managed_direct_locked(), direct_link)
        list_remove(&managed->direct_link);
}

/* ---- down ---- */

void move_fetch_locked(const struct managed_allocation *managed, const struct move_pages *pages)
{
    if (!list_empty(&managed->direct_link))
        move_settle_direct_locked();

    struct managed_batch batch = {.stream = managed_stream_for_locked(NULL)};
    copy_pages_locked(&batch, pages, false);
    managed_batch_send_locked(&batch);
}

/* A copy that has not run yet would overwrite the program's later writes to a page. So until then
 * no page of the device is shown. The fence of one stream tells nothing about another one. */
static bool arrives_on_other_locked(const struct managed_allocation *managed,
                                    const struct stream *stream)
{
    return managed->arrival.word != stream->word && !fence_passed(managed->arrival);
}

/* Pages that an earlier prefetch brings down are copied once more. */
static void forget_arrival_locked(struct managed_allocation *managed)
{
    struct residence_run shown = residence_shown(&managed->residence), at = {shown.first, 0};

    while (residence_next(&managed->residence, shown, PAGE_COMING, &at))
        residence_leave(&managed->residence, at);
}

/* Pages of the program's stay. True when there are copies. */
static bool bring_locked(struct managed_allocation *managed, struct residence_run run,
                         struct managed_batch *batch)
{
    struct residence_run at = {run.first, 0};
    bool sent = false;

    while (residence_next(&managed->residence, run, PAGE_DEVICE, &at)) {
        struct move_pages pages = move_pages_of(managed, at);

        copy_pages_locked(batch, &pages, false);
        residence_come(&managed->residence, at);
        sent = true;
    }
    if (sent)
        managed_activate_locked(managed);
    return sent;
}

/* Kernels on other streams may write to an allocation after a copy, so then it stays there until a
 * page fault. */
CUresult move_down(uint64_t address, uint64_t size, struct stream *stream)
{
    uint32_t seq = stream_begin_fenced(stream);
    struct managed_batch batch = {.stream = stream};
    bool sent = false;

    managed_allocations_lock();
    for_each_managed_locked (managed, address, size) {
        if (use_in_flight_locked(&managed->uses, stream) ||
            arrives_on_other_locked(managed, stream))
            continue;
        forget_arrival_locked(managed);
        sent |= bring_locked(managed, managed_run_of(managed, address, size), &batch);
        managed->arrival = stream_fence_at(stream, seq);
    }
    managed_allocations_unlock();
    managed_batch_send_locked(&batch);
    managed_fence_on_locked(stream, seq);
    stream_end();
    return sent ? client_error() : CUDA_SUCCESS;
}

/* ---- down before a page fault ---- */

/* An allocation of so many pages at most is prefetched whole. */
#define PREFETCH_PAGES 16u
/* Pages that are shown before a page fault hide whether the program uses them. So after this many
 * prefetches the program has to fault again. */
#define PREFETCH_BUDGET 16u

void move_expect_locked(struct managed_allocation *managed)
{
    if (managed->residence.count <= PREFETCH_PAGES)
        managed_set_prefetch_budget_locked(managed, PREFETCH_BUDGET);
}

/* A thread with a page fault in the allocation meanwhile waits for the stream. It does so anyway
 * where a kernel there has the allocation, and the calling thread accesses nothing during its wait.
 */
static bool may_wait_for_locked(const struct managed_allocation *managed,
                                const struct stream *stream)
{
    return managed->thread == (int)syscall(SYS_gettid) || use_is_on_locked(&managed->uses, stream);
}

static bool takes_prefetch_locked(struct managed_allocation *managed, const struct stream *stream)
{
    if (!managed_is_for_locked(managed, stream) || arrives_on_other_locked(managed, stream) ||
        !may_wait_for_locked(managed, stream))
        return false;
    managed_set_prefetch_budget_locked(managed, managed->prefetch_budget - 1);
    return managed->prefetch_budget > 0;
}

/* No other stream of the program's has work. */
static bool prefetch_all_locked(struct stream *stream)
{
    struct managed_batch batch = {.stream = stream, .together = true};
    bool sent = false;

    managed_follow_on_locked(stream);
    list_for_each_safe (struct managed_allocation, managed, managed_prefetched_locked(),
                        prefetch_link) {
        struct residence_run all = {0, managed->residence.count};

        if (!takes_prefetch_locked(managed, stream) || !bring_locked(managed, all, &batch))
            continue;
        managed->arrival = stream_fence_at(stream, fence_next(stream->word));
        sent = true;
    }
    managed_batch_send_locked(&batch);
    return sent;
}

static void move_prefetch_locked(struct stream *stream)
{
    struct stream *busy = stream_only_busy_locked();

    if (!busy || (stream && stream != busy))
        return;
    managed_allocations_lock();
    if (prefetch_all_locked(busy))
        stream_send_fence_locked(busy);
    managed_allocations_unlock();
}

void move_prefetch(struct stream *stream)
{
    if (!managed_any_prefetched())
        return;
    pthread_mutex_lock(&client->lock);
    channel_lock(&client->channel);
    move_prefetch_locked(stream);
    channel_unlock(&client->channel);
    pthread_mutex_unlock(&client->lock);
}

/* The thread that serves a page fault shows its pages. */
static void show_prefetched_locked(struct managed_allocation *managed)
{
    struct residence_run run = residence_shown(&managed->residence);

    if (!managed->fetching && run.count && fence_passed(managed->arrival) &&
        residence_arrived(&managed->residence, run, true))
        page_watch_show(area_watch(), address_of(managed, run), size_of(run), true);
}

void move_show_prefetched(void)
{
    if (!managed_any_prefetched())
        return;
    managed_allocations_lock();
    list_for_each (struct managed_allocation, managed, managed_prefetched_locked(), prefetch_link)
        show_prefetched_locked(managed);
    managed_allocations_unlock();
}
