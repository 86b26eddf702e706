/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages go up on the stream of managed_copy.c, which work that comes behind waits for. A thread of
 * the library serves touches, one at a time: the thread that touches sleeps in the kernel, wherever
 * it is, so nothing that it might hold is taken here but the channel lock, with which nobody looks
 * at the program's memory.
 */
#include "managed_move.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "client_call.h"
#include "client_log.h"
#include "managed_area.h"
#include "managed_batch.h"
#include "managed_check.h"
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

/* Whole pages, between the addresses that the device and the library have for them. */
struct pages {
    uint64_t address, host, size;
    bool of_variables;
};

static struct pages pages_of(const struct managed_block *block, struct residence_run run)
{
    return (struct pages){address_of(block, run), host_of(block, run), size_of(run),
                          block->of_variables};
}

static void copy_bytes_locked(struct managed_batch *batch, const struct pages *pages, uint64_t at,
                              uint64_t size, bool up)
{
    uint64_t host = pages->host + (at - pages->address);

    managed_batch_add_locked(batch, up ? at : host, up ? host : at, size);
}

/* Pages of variables hold other things of the driver's as well, and of other clients': these bytes
 * are neither known here nor written there. */
static void copy_pages_locked(struct managed_batch *batch, const struct pages *pages, bool up)
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

/* True when work on other streams has to be told of it. */
static bool end_upload_locked(struct upload *upload)
{
    managed_batch_send_locked(&upload->batch);
    return upload->batch.stream && upload->batch.stream != upload->before;
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
        struct pages pages = pages_of(block, at);

        copy_pages_locked(upload_batch(upload), &pages, true);
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

static bool is_used_by(const struct managed_block *block, const struct stream *stream)
{
    switch (block_attachment_locked(block)) {
    case CU_MEM_ATTACH_HOST:
        return false;
    case CU_MEM_ATTACH_SINGLE:
        return block->stream == stream->handle;
    default:
        return true;
    }
}

bool move_up_for_locked(struct stream *stream)
{
    if (!block_any_active())
        return false;

    struct upload upload = {.before = stream};
    block_lock();
    list_for_each_safe (struct managed_block, block, block_active_locked(), link) {
        if (is_used_by(block, stream))
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

/* ---- down ---- */

/* Pages that a prefetch brings down behind different streams are not told apart: those of the
 * earlier one are fetched when they are touched. */
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
        struct pages pages = pages_of(block, at);

        copy_pages_locked(batch, &pages, false);
        residence_come(&block->residence, at);
        sent = true;
    }
    if (sent)
        block_activate_locked(block);
    return sent;
}

CUresult move_down(uint64_t address, uint64_t size, struct stream *stream)
{
    uint32_t seq = stream_begin_fenced(stream);
    struct managed_batch batch = {.stream = stream};
    bool sent = false;

    block_lock();
    for_each_block_locked (block, address, size) {
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

static void expect_touch_locked(struct managed_block *block, enum residence_step_kind kind)
{
    if (kind == STEP_FETCH && block->residence.count <= AHEAD_PAGES)
        block_set_turns_locked(block, AHEAD_TURNS);
}

/* The number of the fence that will be sent next: see fence_issue(). */
static struct fence next_fence_locked(const struct stream *stream)
{
    uint32_t seq = fence_issued(stream->word) + 1;

    return stream_fence_at(stream, seq ? seq : 1);
}

static bool takes_turn_locked(struct managed_block *block, const struct stream *stream)
{
    if (!is_used_by(block, stream))
        return false;
    block_set_turns_locked(block, block->turns - 1);
    return block->turns > 0;
}

/* No other stream has work. */
static bool bring_ahead_locked(struct stream *stream)
{
    struct managed_batch batch = {.stream = stream, .together = true};
    bool sent = false;

    list_for_each_safe (struct managed_block, block, block_ahead_locked(), ahead_link) {
        struct residence_run all = {0, block->residence.count};

        if (!takes_turn_locked(block, stream) || !bring_locked(block, all, &batch))
            continue;
        block->arrival = next_fence_locked(stream);
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

/* ---- touches ---- */

/* What a touch needs, taken down so that no lock is held while waiting. */
struct errand {
    uint64_t id;
    struct pages pages;
    struct residence_step step;
    struct fence fence;
};

static bool begin_errand(const struct page_touch *touch, struct errand *ret_errand)
{
    struct managed_block *block = block_at_locked(touch->address);
    uint32_t page;

    if (!block)
        return false;
    page = (uint32_t)((touch->address - block->entry.address) / RESIDENCE_PAGE);
    ret_errand->id = block->allocation.id;
    ret_errand->step = residence_touch(&block->residence, page, touch->writes);
    ret_errand->pages = pages_of(block, ret_errand->step.run);
    ret_errand->fence = block->arrival;
    block->fetching = ret_errand->step.kind == STEP_FETCH;
    expect_touch_locked(block, ret_errand->step.kind);
    block_activate_locked(block);
    return true;
}

static void send_errand_locked(struct errand *errand)
{
    struct managed_batch batch = {.stream = managed_stream_for_locked(NULL)};

    if (errand->step.kind != STEP_FETCH)
        return;
    copy_pages_locked(&batch, &errand->pages, false);
    managed_batch_send_locked(&batch);
    errand->fence = managed_send_fence_locked();
}

/* A page can be shown only when the memory has one. */
static void make_pages(uint64_t host, uint64_t size)
{
    for (uint64_t done = 0; done < size; done += RESIDENCE_PAGE)
        (void)*(volatile const unsigned char *)(uintptr_t)(host + done);
}

/* The block that the pages are of: NULL when it is gone. */
static struct managed_block *block_of_locked(const struct errand *errand)
{
    struct managed_block *block = block_at_locked(errand->pages.address);

    return block && block->allocation.id == errand->id ? block : NULL;
}

/* Where the device has got the pages back meanwhile, the thread touches them once more. */
static void arrive_locked(const struct errand *errand)
{
    uint64_t address = errand->pages.address, size = errand->pages.size;
    struct managed_block *block = block_of_locked(errand);

    if (block)
        block->fetching = false;
    if (!block || !residence_arrived(&block->residence, errand->step.run, errand->step.writable)) {
        page_watch_wake(area_watch(), address, size);
        return;
    }
    if (page_watch_show(area_watch(), address, size, errand->step.writable))
        residence_open(&block->residence, errand->step.run);
}

/* What takes no copy is done at once. True when there is something to wait for. */
static bool show_locked(const struct errand *errand)
{
    uint64_t address = errand->pages.address, size = errand->pages.size;

    switch (errand->step.kind) {
    case STEP_CREATE:
        make_pages(errand->pages.host, size);
        page_watch_show(area_watch(), address, size, true);
        return false;
    case STEP_SHOW:
        page_watch_show(area_watch(), address, size, errand->step.writable);
        return false;
    case STEP_ALLOW:
        page_watch_allow_writes(area_watch(), address, size);
        return false;
    default:
        return true;
    }
}

/* After the loss of the device's memory the program finds what it had there last, and the error in
 * its next call. */
static void report(const struct errand *errand, CUresult result)
{
    if (result != CUDA_SUCCESS)
        client_log("managed memory at %#llx could not be brought to the host (error %d), which "
                   "finds old contents there",
                   (unsigned long long)errand->pages.address, (int)result);
}

/* Memory that has been freed is still there. */
static void show_as_it_is(const struct page_touch *touch)
{
    uint64_t host = area_host_address(touch->address);

    if (host)
        make_pages(host, RESIDENCE_PAGE);
    page_watch_show(area_watch(), touch->address, RESIDENCE_PAGE, true);
}

enum outcome { OUTCOME_UNKNOWN, OUTCOME_DONE, OUTCOME_COMING };

static enum outcome start(const struct page_touch *touch, struct errand *ret_errand)
{
    bool found;

    channel_lock(&client->channel);
    block_lock();
    found = begin_errand(touch, ret_errand);
    if (found)
        send_errand_locked(ret_errand);
    channel_unlock(&client->channel);
    if (found)
        found = show_locked(ret_errand);
    block_unlock();
    return found ? OUTCOME_COMING : ret_errand->id ? OUTCOME_DONE : OUTCOME_UNKNOWN;
}

static void wait_and_show(const struct errand *errand)
{
    report(errand, managed_wait_quietly(errand->fence));
    block_lock();
    arrive_locked(errand);
    block_unlock();
}

static void serve(const struct page_touch *touch)
{
    struct errand errand = {.id = 0};

    if (check_refuses(touch))
        return;
    switch (start(touch, &errand)) {
    case OUTCOME_UNKNOWN:
        show_as_it_is(touch);
        break;
    case OUTCOME_COMING:
        wait_and_show(&errand);
        break;
    case OUTCOME_DONE:
        break;
    }
}

static void *serve_touches(void *unused)
{
    int watch = area_watch();
    struct page_touch touch;

    (void)unused;
    while (page_watch_next(watch, &touch) == 0) {
        call_begin();
        serve(&touch);
        call_end();
    }
    return NULL;
}

/* Signals are for the program's threads, so ours blocks all that others send. */
static bool start_thread(void)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    pthread_t thread;
    bool started;

    sigfillset(&all);
    sigdelset(&all, SIGSEGV); /* write_guard.h */
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    started = pthread_create(&thread, &attributes, serve_touches, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

bool move_prepare(struct device *device)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint32_t started; /* generation of the client whose touches are served */
    _cleanup_mutex_ pthread_mutex_t *held = mutex_hold(&lock);

    if (managed_copy_prepare(device) != CUDA_SUCCESS)
        return false;
    if (started != client->generation && start_thread())
        started = client->generation;
    return started == client->generation;
}
