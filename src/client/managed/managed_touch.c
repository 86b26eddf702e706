/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread of the library serves touches, one at a time: the thread that touches sleeps in the
 * kernel, wherever it is, so nothing that it might hold is taken here but the channel lock, with
 * which nobody looks at the program's memory.
 */
#include "managed_touch.h"

#include <signal.h>

#include "cleanup.h"
#include "client_call.h"
#include "client_log.h"
#include "managed_area.h"
#include "managed_batch.h"
#include "managed_check.h"
#include "managed_copy.h"
#include "managed_move.h"
#include "page_watch.h"

/* What a touch needs, taken down so that no lock is held while waiting. */
struct errand {
    uint64_t id;
    struct move_pages pages;
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
    ret_errand->pages = move_pages_of(block, ret_errand->step.run);
    ret_errand->fence = block->arrival;
    block->fetching = ret_errand->step.kind == STEP_FETCH;
    if (block->fetching)
        move_expect_locked(block);
    block_activate_locked(block);
    return true;
}

static void send_errand_locked(struct errand *errand)
{
    struct managed_batch batch = {.stream = managed_stream_for_locked(NULL)};

    if (errand->step.kind != STEP_FETCH)
        return;
    move_copy_locked(&batch, &errand->pages, false);
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

bool touch_prepare(struct device *device)
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
