/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread of the library serves touches, one at a time: the thread that touches sleeps in the
 * kernel, wherever it is, so nothing that it might hold is taken here but the channel lock, with
 * which no thread looks at the program's memory. A thread that holds this lock, or one that is
 * taken under it, defers its signals (deferred_signals.h), because their handlers look where they
 * like.
 *
 * Host and kernels take turns: what a kernel writes to a page that has been copied down would be
 * lost. So a touch of a block that a launch in flight was given a pointer into waits for its end.
 * The thread that touches is left asleep meanwhile and others are served; then it is woken, and
 * touches once more.
 */
#include "managed_touch.h"

#include <errno.h>
#include <signal.h>

#include "cleanup.h"
#include "client_call.h"
#include "client_log.h"
#include "clock.h"
#include "deferred_signals.h"
#include "managed_area.h"
#include "managed_check.h"
#include "managed_copy.h"
#include "managed_move.h"
#include "page_watch.h"
#include "recovery_hook.h"

/* A kernel that itself waits for what the thread would do next would be waited for in vain. */
#define WAIT_TIMEOUT_NS (5 * NS_PER_SEC)

/* How often it is looked whether a launch has ended: from very often to seldom. */
#define LOOK_FIRST_NS 20000u
#define LOOK_LAST_NS 320000u

/* ---- touches that wait ---- */

static bool is_in_time_locked(const struct managed_block *block)
{
    return clock_ns() - block->wait.since < WAIT_TIMEOUT_NS;
}

/* How long touches have waited counts until one finds no launch in flight: launches that follow one
 * another closely would outlast any timeout. */
static bool waits_for_launches_locked(struct managed_block *block)
{
    if (!use_in_flight_locked(&block->uses, NULL)) {
        block->wait.since = 0;
        return false;
    }
    if (!block->wait.since)
        block->wait.since = clock_ns();
    return is_in_time_locked(block);
}

/* Whether the touch of a page has to wait, and then the block is one that is waited for. When the
 * server is gone, nothing ends any more. */
static bool has_to_wait_locked(struct managed_block *block, uint32_t page)
{
    enum residence_state state = residence_of(&block->residence, page);
    bool launches, arrival;

    if (client_error() != CUDA_SUCCESS)
        return false;
    launches = state == PAGE_DEVICE && waits_for_launches_locked(block);
    arrival = (state == PAGE_DEVICE || state == PAGE_COMING) && !fence_passed(block->arrival);
    if (launches || arrival)
        block_await_locked(block);
    block->wait.for_launches |= launches;
    block->wait.for_arrival |= arrival;
    return launches || arrival;
}

static bool is_pending_locked(struct managed_block *block)
{
    const struct managed_wait *wait = &block->wait;

    if (wait->for_arrival && fence_passed(block->arrival))
        return false;
    return !wait->for_launches ||
           (is_in_time_locked(block) && use_in_flight_locked(&block->uses, NULL));
}

static void wake_locked(bool all)
{
    list_for_each_safe (struct managed_block, block, block_awaited_locked(), wait.link) {
        if (all || !is_pending_locked(block))
            block_wake_locked(block);
    }
}

/* Whether the server is still there only its socket tells. */
static void look_for_ends(void)
{
    bool lost;

    channel_alive(&client->channel);
    lost = recovery_error() != CUDA_SUCCESS;
    channel_lock(&client->channel);
    block_lock();
    wake_locked(lost);
    block_unlock();
    channel_unlock(&client->channel);
}

static bool any_waits(void)
{
    bool any;

    block_lock();
    any = !list_empty(block_awaited_locked());
    block_unlock();
    return any;
}

static uint32_t next_pause(uint32_t pause)
{
    return pause < LOOK_LAST_NS ? 2 * pause : pause;
}

/* -EAGAIN when there is none, but a touch waits. */
static int next_touch(int watch, uint32_t pause, struct page_touch *ret_touch)
{
    return any_waits() ? page_watch_next_within(watch, pause, ret_touch)
                       : page_watch_next(watch, ret_touch);
}

/* ---- touches that are served ---- */

/* What a touch needs, taken down so that no lock is held while waiting. */
struct errand {
    uint64_t id;
    struct move_pages pages;
    struct residence_step step;
    struct fence fence;
    bool early; /* launches that use the pages have not ended */
};

static void note_thread_locked(struct managed_block *block, int thread)
{
    if (block->thread == THREAD_NONE)
        block->thread = thread;
    else if (block->thread != thread)
        block->thread = THREAD_SEVERAL;
}

static void begin_errand_locked(struct managed_block *block, uint32_t page,
                                const struct page_touch *touch, struct errand *ret_errand)
{
    note_thread_locked(block, touch->thread);
    ret_errand->id = block->allocation.id;
    ret_errand->step = residence_touch(&block->residence, page, touch->writes);
    ret_errand->pages = move_pages_of(block, ret_errand->step.run);
    ret_errand->fence = block->arrival;
    block->fetching = ret_errand->step.kind == STEP_FETCH;
    ret_errand->early = block->fetching && block->wait.since && !is_in_time_locked(block);
    if (block->fetching)
        move_expect_locked(block);
    block_activate_locked(block);
}

static void send_errand_locked(const struct managed_block *block, struct errand *errand)
{
    if (errand->step.kind != STEP_FETCH)
        return;
    move_fetch_locked(block, &errand->pages);
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

/* Where the device has got the pages back meanwhile, the thread touches them once more. They may be
 * on their way down again by then. */
static void arrive_locked(const struct errand *errand)
{
    uint64_t address = errand->pages.address, size = errand->pages.size;
    struct managed_block *block = block_of_locked(errand);

    if (block)
        block->fetching = false;
    if (!block || !fence_passed(block->arrival) ||
        !residence_arrived(&block->residence, errand->step.run, errand->step.writable)) {
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

/* How a program is found that depends on concurrent access. */
static void say_once(const struct page_touch *touch)
{
    static bool said;

    if (!said)
        client_log("thread %d has waited for %d s at managed memory at %#llx, which a kernel uses "
                   "that has not ended: it goes on, and what that kernel writes there from now on "
                   "may be lost; synchronize first",
                   touch->thread, (int)(WAIT_TIMEOUT_NS / NS_PER_SEC),
                   (unsigned long long)touch->address);
    said = true;
}

/* Memory that has been freed is still there. */
static void show_as_it_is(const struct page_touch *touch)
{
    uint64_t host = area_host_address(touch->address);

    if (host)
        make_pages(host, RESIDENCE_PAGE);
    page_watch_show(area_watch(), touch->address, RESIDENCE_PAGE, true);
}

enum outcome { OUTCOME_UNKNOWN, OUTCOME_WAITS, OUTCOME_BEGUN, OUTCOME_DONE };

static enum outcome begin_locked(const struct page_touch *touch, struct errand *ret_errand)
{
    struct managed_block *block = block_at_locked(touch->address);
    uint32_t page;

    if (!block)
        return OUTCOME_UNKNOWN;
    page = (uint32_t)((touch->address - block->entry.address) / RESIDENCE_PAGE);
    if (has_to_wait_locked(block, page))
        return OUTCOME_WAITS;
    begin_errand_locked(block, page, touch, ret_errand);
    send_errand_locked(block, ret_errand);
    return OUTCOME_BEGUN;
}

static enum outcome start(const struct page_touch *touch, struct errand *ret_errand)
{
    enum outcome outcome;

    channel_lock(&client->channel);
    block_lock();
    outcome = begin_locked(touch, ret_errand);
    channel_unlock(&client->channel);
    if (outcome == OUTCOME_BEGUN && !show_locked(ret_errand))
        outcome = OUTCOME_DONE;
    block_unlock();
    return outcome;
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
    struct errand errand;

    if (check_refuses(touch))
        return;
    switch (start(touch, &errand)) {
    case OUTCOME_UNKNOWN:
        show_as_it_is(touch);
        break;
    case OUTCOME_BEGUN:
        wait_and_show(&errand);
        if (errand.early)
            say_once(touch);
        break;
    case OUTCOME_WAITS:
    case OUTCOME_DONE:
        break;
    }
}

static void *serve_touches(void *unused)
{
    int watch = area_watch(), error;
    uint32_t pause = LOOK_FIRST_NS;
    struct page_touch touch;

    (void)unused;
    signals_defer(); /* it takes locks again and again, and has no signals but of faults */
    while ((error = next_touch(watch, pause, &touch)) == 0 || error == -EAGAIN) {
        call_begin();
        if (error == 0)
            serve(&touch);
        if (any_waits())
            look_for_ends();
        call_end();
        pause = error == 0 ? LOOK_FIRST_NS : next_pause(pause);
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

/* A thread that holds the channel lock already has not deferred its signals. */
static void defer_signals(void)
{
    signals_begin_to_defer();
    channel_lock(&client->channel);
    channel_unlock(&client->channel);
}

bool touch_prepare(struct device *device)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint32_t started; /* generation of the client whose touches are served */
    _cleanup_mutex_ pthread_mutex_t *held = mutex_hold(&lock);

    if (!use_prepare() || managed_copy_prepare(device) != CUDA_SUCCESS)
        return false;
    if (started == client->generation)
        return true;
    defer_signals();
    if (start_thread())
        started = client->generation;
    return started == client->generation;
}
