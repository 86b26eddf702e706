/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread of the library serves page faults, one at a time. The thread with the page fault sleeps
 * in the kernel, wherever it is. It may have any lock, so none is taken here but the channel lock,
 * with which no thread reads the program's memory. A thread that takes the channel lock, or one
 * under it, defers its signals (deferred_signals.h), because their handlers may read any memory.
 *
 * Host and kernels use memory alternately: a kernel's write to a page that has been copied down
 * would be lost. So a page fault waits while a launch in flight has a pointer into the allocation.
 * Meanwhile its thread sleeps, and others are served. Then it wakes, and repeats the page fault.
 */
#include "managed_fault.h"

#include <errno.h>
#include <signal.h>

#include "cleanup.h"
#include "client_call.h"
#include "client_entry.h"
#include "client_log.h"
#include "clock.h"
#include "deferred_signals.h"
#include "managed_area.h"
#include "managed_check.h"
#include "managed_copy.h"
#include "managed_move.h"
#include "managed_variable.h"
#include "page_watch.h"
#include "recovery_hook.h"

/* A kernel may itself wait for the next step of the thread; then nothing would end the wait. */
#define WAIT_TIMEOUT_NS (5 * NS_PER_SEC)

/* How often the launches are polled: from 20 to 320 us. */
#define LOOK_FIRST_NS 20000u
#define LOOK_LAST_NS 320000u

/* ---- page faults that wait ---- */

static bool is_in_time_locked(const struct managed_allocation *managed)
{
    return clock_ns() - managed->wait.since < WAIT_TIMEOUT_NS;
}

/* The wait counts until a page fault finds no launch in flight: launches in close sequence would
 * outlast any timeout. */
static bool waits_for_launches_locked(struct managed_allocation *managed)
{
    if (!use_in_flight_locked(&managed->uses, NULL)) {
        managed->wait.since = 0;
        return false;
    }
    if (!managed->wait.since)
        managed->wait.since = clock_ns();
    return is_in_time_locked(managed);
}

/* Whether the page fault has to wait; then the allocation is an awaited one. After the end of the
 * server nothing ends any more. */
static bool has_to_wait_locked(struct managed_allocation *managed, uint32_t page)
{
    enum residence_state state = residence_of(&managed->residence, page);
    bool launches, arrival;

    if (client_error() != CUDA_SUCCESS)
        return false;
    launches = state == PAGE_DEVICE && waits_for_launches_locked(managed);
    arrival = (state == PAGE_DEVICE || state == PAGE_COMING) && !fence_passed(managed->arrival);
    if (launches || arrival)
        managed_await_locked(managed);
    managed->wait.for_launches |= launches;
    managed->wait.for_arrival |= arrival;
    return launches || arrival;
}

static bool is_pending_locked(struct managed_allocation *managed)
{
    const struct managed_wait *wait = &managed->wait;

    if (wait->for_arrival && fence_passed(managed->arrival))
        return false;
    return !wait->for_launches ||
           (is_in_time_locked(managed) && use_in_flight_locked(&managed->uses, NULL));
}

static void wake_locked(bool all)
{
    list_for_each_safe (struct managed_allocation, managed, managed_awaited_locked(), wait.link) {
        if (all || !is_pending_locked(managed))
            managed_wake_threads_locked(managed);
    }
}

/* Only its socket tells whether the server is alive. */
static void look_for_ends(void)
{
    bool lost;

    channel_alive(&client->channel);
    lost = recovery_error() != CUDA_SUCCESS;
    channel_lock(&client->channel);
    managed_allocations_lock();
    wake_locked(lost);
    managed_allocations_unlock();
    channel_unlock(&client->channel);
}

static bool any_waits(void)
{
    bool any;

    managed_allocations_lock();
    any = !list_empty(managed_awaited_locked());
    managed_allocations_unlock();
    return any;
}

static uint32_t next_pause(uint32_t pause)
{
    return pause < LOOK_LAST_NS ? 2 * pause : pause;
}

/* -EAGAIN when there is no page fault, but one waits. */
static int next_fault(int watch, uint32_t pause, struct page_fault *ret_fault)
{
    return any_waits() ? page_watch_next_within(watch, pause, ret_fault)
                       : page_watch_next(watch, ret_fault);
}

/* ---- page faults that are served ---- */

/* One page fault, as it is served: a copy, so that no lock is taken during the wait. */
struct page_request {
    uint64_t id;
    struct move_pages pages;
    struct residence_step step;
    struct fence fence;
    bool early; /* launches that use the pages have not ended */
};

static void note_thread_locked(struct managed_allocation *managed, int thread)
{
    if (managed->thread == THREAD_NONE)
        managed->thread = thread;
    else if (managed->thread != thread)
        managed->thread = THREAD_SEVERAL;
}

static void begin_request_locked(struct managed_allocation *managed, uint32_t page,
                                 const struct page_fault *fault, struct page_request *ret_request)
{
    note_thread_locked(managed, fault->thread);
    ret_request->id = managed->allocation.id;
    ret_request->step = residence_fault(&managed->residence, page, fault->writes);
    ret_request->pages = move_pages_of(managed, ret_request->step.run);
    ret_request->fence = managed->arrival;
    managed->fetching = ret_request->step.kind == STEP_FETCH;
    ret_request->early = managed->fetching && managed->wait.since && !is_in_time_locked(managed);
    if (managed->fetching)
        move_expect_locked(managed);
    managed_activate_locked(managed);
}

static void send_request_locked(const struct managed_allocation *managed,
                                struct page_request *request)
{
    if (request->step.kind != STEP_FETCH)
        return;
    move_fetch_locked(managed, &request->pages);
    request->fence = managed_send_fence_locked();
}

/* A page can be shown only when the memory has one. */
static void make_pages(uint64_t host, uint64_t size)
{
    for (uint64_t done = 0; done < size; done += RESIDENCE_PAGE)
        (void)*(volatile const unsigned char *)(uintptr_t)(host + done);
}

/* The allocation of the pages: NULL when it has ended. */
static struct managed_allocation *managed_of_locked(const struct page_request *request)
{
    struct managed_allocation *managed = managed_at_locked(request->pages.address);

    return managed && managed->allocation.id == request->id ? managed : NULL;
}

/* When the device has got the pages back meanwhile, the thread repeats the page fault. The pages
 * may be on their way down again by then. */
static void arrive_locked(const struct page_request *request)
{
    uint64_t address = request->pages.address, size = request->pages.size;
    struct managed_allocation *managed = managed_of_locked(request);

    if (managed)
        managed->fetching = false;
    if (!managed || !fence_passed(managed->arrival) ||
        !residence_arrived(&managed->residence, request->step.run, request->step.writable)) {
        page_watch_wake(area_watch(), address, size);
        return;
    }
    if (page_watch_show(area_watch(), address, size, request->step.writable))
        residence_open(&managed->residence, request->step.run);
}

/* Serves page faults without a copy at once. True when there is a copy to wait for. */
static bool show_locked(const struct page_request *request)
{
    uint64_t address = request->pages.address, size = request->pages.size;

    switch (request->step.kind) {
    case STEP_CREATE:
        make_pages(request->pages.host, size);
        page_watch_show(area_watch(), address, size, true);
        return false;
    case STEP_SHOW:
        page_watch_show(area_watch(), address, size, request->step.writable);
        return false;
    case STEP_ALLOW:
        page_watch_allow_writes(area_watch(), address, size);
        return false;
    default:
        return true;
    }
}

/* After the loss of the device's memory the program finds the last contents that came down, and the
 * error in its next call. */
static void report_loss(const struct page_request *request, CUresult result)
{
    if (result != CUDA_SUCCESS)
        client_log("managed memory at %#llx could not be brought to the host (error %d), which "
                   "finds old contents there",
                   (unsigned long long)request->pages.address, (int)result);
}

/* How a program is found that depends on concurrent access. */
static void say_once(const struct page_fault *fault)
{
    static bool said;

    if (!said)
        client_log("thread %d has waited for %d s at managed memory at %#llx, which a kernel uses "
                   "that has not ended: it goes on, and what that kernel writes there from now on "
                   "may be lost; synchronize first",
                   fault->thread, (int)(WAIT_TIMEOUT_NS / NS_PER_SEC),
                   (unsigned long long)fault->address);
    said = true;
}

/* Memory that has been freed is still there. */
static void show_as_it_is(const struct page_fault *fault)
{
    uint64_t host = area_host_address(fault->address);

    if (host)
        make_pages(host, RESIDENCE_PAGE);
    page_watch_show(area_watch(), fault->address, RESIDENCE_PAGE, true);
}

enum outcome { OUTCOME_UNKNOWN, OUTCOME_WAITS, OUTCOME_BEGUN, OUTCOME_DONE };

static enum outcome begin_locked(const struct page_fault *fault, struct page_request *ret_request)
{
    struct managed_allocation *managed = managed_at_locked(fault->address);
    uint32_t page;

    if (!managed)
        return OUTCOME_UNKNOWN;
    page = (uint32_t)((fault->address - managed->entry.address) / RESIDENCE_PAGE);
    if (has_to_wait_locked(managed, page))
        return OUTCOME_WAITS;
    begin_request_locked(managed, page, fault, ret_request);
    send_request_locked(managed, ret_request);
    return OUTCOME_BEGUN;
}

static enum outcome start_request(const struct page_fault *fault, struct page_request *ret_request)
{
    enum outcome outcome;

    channel_lock(&client->channel);
    managed_allocations_lock();
    outcome = begin_locked(fault, ret_request);
    channel_unlock(&client->channel);
    if (outcome == OUTCOME_BEGUN && !show_locked(ret_request))
        outcome = OUTCOME_DONE;
    managed_allocations_unlock();
    return outcome;
}

static void wait_and_show(const struct page_request *request)
{
    report_loss(request, managed_wait_quietly(request->fence));
    managed_allocations_lock();
    arrive_locked(request);
    managed_allocations_unlock();
}

static void serve_fault(const struct page_fault *fault)
{
    struct page_request request;

    if (check_refuses(fault))
        return;
    switch (start_request(fault, &request)) {
    case OUTCOME_UNKNOWN:
        show_as_it_is(fault);
        break;
    case OUTCOME_BEGUN:
        wait_and_show(&request);
        if (request.early)
            say_once(fault);
        break;
    case OUTCOME_WAITS:
    case OUTCOME_DONE:
        break;
    }
}

static void *serve_faults(void *unused)
{
    int watch = area_watch(), error;
    uint32_t pause = LOOK_FIRST_NS;
    struct page_fault fault;

    (void)unused;
    signals_defer(); /* it takes locks again and again, and has no signals but of faults */
    while ((error = next_fault(watch, pause, &fault)) == 0 || error == -EAGAIN) {
        call_begin();
        if (error == 0)
            serve_fault(&fault);
        if (any_waits())
            look_for_ends();
        call_end();
        pause = error == 0 ? LOOK_FIRST_NS : next_pause(pause);
    }
    return NULL;
}

/* Signals are for the program's threads, so ours allocations all that others send. */
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
    started = pthread_create(&thread, &attributes, serve_faults, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

/* A thread with the channel lock may not have deferred its signals. */
static void defer_signals(void)
{
    signals_begin_to_defer();
    channel_lock(&client->channel);
    channel_unlock(&client->channel);
}

/* The pages of a stack in managed memory would be hidden, and could not be shown while their thread
 * holds the channel lock. So calls of such threads are refused. */
static void refuse_managed_stacks(void)
{
    client_mode_change(CLIENT_FUNNEL, CLIENT_FUNNEL_MANAGED);
}

bool fault_prepare(struct device *device)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint32_t started; /* generation of the client whose page faults are served */
    _cleanup_mutex_ pthread_mutex_t *held = mutex_hold(&lock);

    if (!use_prepare() || managed_copy_prepare(device) != CUDA_SUCCESS)
        return false;
    if (started == client->generation)
        return true;
    defer_signals();
    refuse_managed_stacks();
    if (start_thread())
        started = client->generation;
    return started == client->generation;
}
