/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two holds may be in the stream at a time: one that ends, and one behind the next request. Their
 * events say which are over. A hold that the driver refuses in part ends the holds of the device,
 * as a fault does. A hold waits for the work before it, and that may never end. After STUCK_NS the
 * next hold gets another stream, so no client keeps the holds of others away. Each stream of a
 * client has one hold at a time, so it is the reason for one such stream at most.
 */
#include "context_hold.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "cleanup.h"
#include "client_class.h"
#include "clock.h"
#include "fence.h"
#include "hold_budget.h"
#include "hold_demand.h"
#include "launch_state.h"
#include "log.h"
#include "memory.h"
#include "own_kernel.h"
#include "page_lock.h"
#include "server_dispatch.h"
#include "session.h"
#include "window.h"

#define NAME "funnel_pause"

/* On an H200 eight launches kept the GPU half as well as 64, and 16 as well. Sixteen writes keep it
 * as sixteen launches do, and take the driver 28 us in place of 72. */
#define WRITES 16u
#define PAUSE_NS 100000u

/* Of a lasting hold. Calls of the driver that wait for all streams may wait for two of these. */
#define LASTING_MOST_NS 2000000u

/* Requests of critical programs are shorter. */
#define STUCK_NS (NS_PER_SEC / 2)

#define WORDS_SIZE 4096u
#define HOLDS 2u

/* Page-locked. */
struct hold_words {
    _Atomic uint32_t requests; /* how many there were: the pause watches it; wraps */
    uint32_t apart[31];
    uint32_t written; /* by the GPU; never read */
};

struct context_hold {
    pthread_mutex_t lock; /* of all below */
    CUfunction pause;
    struct hold_words *words;
    CUstream stream; /* created for the first hold */
    CUevent begins;
    CUevent ends[HOLDS];   /* NULL: that hold has never begun */
    uint64_t asked[HOLDS]; /* when: clock_ns() */
    unsigned next;
    bool unavailable, logged;
    struct hold_budget budget;
};

/* It ends `idle` after the last change of the word, and at the latest `most` after its begin. Short
 * sleeps, because the length of one is not exact. */
static const char ptx[] =
    ".version 6.4\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .entry " NAME "(.param .u64 idle, .param .u64 most, .param .u64 word)\n"
    "{\n"
    "    .reg .u64 %idle, %most, %word, %begin, %change, %now, %passed;\n"
    "    .reg .u32 %seen, %value;\n"
    "    .reg .pred %same, %over;\n"
    "    ld.param.u64 %idle, [idle];\n"
    "    ld.param.u64 %most, [most];\n"
    "    ld.param.u64 %word, [word];\n"
    "    mov.u64 %begin, %globaltimer;\n"
    "    mov.u64 %change, %begin;\n"
    "    ld.volatile.u32 %seen, [%word];\n"
    "AGAIN:\n"
    "    mov.u64 %now, %globaltimer;\n"
    "    ld.volatile.u32 %value, [%word];\n"
    "    setp.eq.u32 %same, %value, %seen;\n"
    "    @%same bra SAME;\n"
    "    mov.u32 %seen, %value;\n"
    "    mov.u64 %change, %now;\n"
    "SAME:\n"
    "    sub.u64 %passed, %now, %change;\n"
    "    setp.ge.u64 %over, %passed, %idle;\n"
    "    @%over bra OVER;\n"
    "    sub.u64 %passed, %now, %begin;\n"
    "    setp.ge.u64 %over, %passed, %most;\n"
    "    @%over bra OVER;\n"
    "    nanosleep.u32 5000;\n"
    "    bra AGAIN;\n"
    "OVER:\n"
    "    ret;\n"
    "}\n";

/* ---- the life of a device ---- */

static CUresult lock_words(struct server *server, struct context_hold *hold)
{
    void *page = mmap(NULL, WORDS_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    hold->words = page;
    CUresult result = page_lock(server_windows(server)->page_locker, page, WORDS_SIZE);
    if (result != CUDA_SUCCESS)
        munmap(page, WORDS_SIZE);
    return result;
}

void context_hold_load(struct server *server, struct device *device)
{
    struct context_hold *hold = calloc(1, sizeof(*hold));

    if (!hold)
        return;
    CUresult result = own_kernel_load(device, ptx, NAME, &hold->pause);
    if (result == CUDA_SUCCESS)
        result = lock_words(server, hold);
    if (result != CUDA_SUCCESS) {
        log_line("Device %d: critical programs share the GPU's time with batch lanes without "
                 "holds: %s",
                 device->ordinal, driver_error_name(result));
        free(hold);
        return;
    }
    pthread_mutex_init(&hold->lock, NULL);
    device->launch->hold = hold;
}

/* The words stay: the GPU may still write there, and the process ends. */
void context_hold_unload(struct device *device)
{
    struct context_hold *hold = steal_pointer(device->launch->hold);

    if (!hold)
        return;
    pthread_mutex_destroy(&hold->lock);
    free(hold);
}

/* Partner: kind_allowed(). */
void context_hold_allow(struct server *server, enum hold_kind kind)
{
    atomic_store_explicit(&server->launch->holds, kind, memory_order_relaxed);
}

/* Partner: context_hold_allow(). */
static enum hold_kind kind_allowed(const struct server *server)
{
    return (enum hold_kind)atomic_load_explicit(&server->launch->holds, memory_order_relaxed);
}

/* ---- a hold ---- */

static CUresult make_event(CUevent *event)
{
    return *event ? CUDA_SUCCESS : driver.cuEventCreate(event, CU_EVENT_DISABLE_TIMING);
}

/* The priority is the lowest, so that no block of a client waits for one of these. */
static CUresult prepare(struct context_hold *hold, const struct device *device)
{
    CUresult result = CUDA_SUCCESS;

    if (!hold->stream)
        result = driver.cuStreamCreateWithPriority(&hold->stream, CU_STREAM_NON_BLOCKING,
                                                   device->record.priority_least);
    if (result == CUDA_SUCCESS)
        result = make_event(&hold->begins);
    return result == CUDA_SUCCESS ? make_event(&hold->ends[hold->next]) : result;
}

static CUresult launch_pause(const struct context_hold *hold, bool lasts)
{
    const CUlaunchConfig config = {1, 1, 1, 1, 1, 1, .hStream = hold->stream};
    uint64_t idle_ns = lasts ? HOLD_LASTING_NS : PAUSE_NS;
    uint64_t most_ns = lasts ? LASTING_MOST_NS : PAUSE_NS;
    uint64_t word = (uintptr_t)&hold->words->requests;
    void *params[] = {&idle_ns, &most_ns, &word};

    return driver.cuLaunchKernelEx(&config, hold->pause, params, NULL);
}

static CUresult begin_behind(struct context_hold *hold, const struct stream *stream, bool lasts)
{
    CUresult result = prepare(hold, stream->device);

    if (result == CUDA_SUCCESS)
        result = driver.cuEventRecord(hold->begins, stream->driver);
    if (result == CUDA_SUCCESS)
        result = driver.cuStreamWaitEvent(hold->stream, hold->begins, 0);
    if (result == CUDA_SUCCESS)
        result = launch_pause(hold, lasts);
    for (unsigned i = 0; i < WRITES && result == CUDA_SUCCESS; i++)
        result =
            driver.cuStreamWriteValue32_v2(hold->stream, (uintptr_t)&hold->words->written, 0, 0);
    if (result == CUDA_SUCCESS)
        result = driver.cuEventRecord(hold->ends[hold->next], hold->stream);
    return result;
}

static bool is_free(const struct context_hold *hold)
{
    CUevent before = hold->ends[hold->next];

    return !before || driver.cuEventQuery(before) == CUDA_SUCCESS;
}

/* The driver frees stream and events when the work is done that they wait for. */
static void leave_stuck(struct context_hold *hold, uint64_t now)
{
    if (is_free(hold) || now - hold->asked[hold->next] < STUCK_NS)
        return;
    driver.cuStreamDestroy_v2(steal_pointer(hold->stream));
    driver.cuEventDestroy_v2(steal_pointer(hold->begins));
    for (unsigned i = 0; i < HOLDS; i++)
        if (hold->ends[i])
            driver.cuEventDestroy_v2(steal_pointer(hold->ends[i]));
}

static void log_hold(struct context_hold *hold, const struct device *device, CUresult result)
{
    if (result != CUDA_SUCCESS)
        log_line("Device %d: no more holds of the GPU for critical programs: %s", device->ordinal,
                 driver_error_name(result));
    else if (!hold->logged)
        log_line("Device %d: the GPU is held behind requests of critical programs, as a batch lane "
                 "has work",
                 device->ordinal);
    hold->unavailable = result != CUDA_SUCCESS;
    hold->logged = true;
}

/* The pause reads the word some microseconds later. */
static void lengthen(struct context_hold *hold)
{
    atomic_fetch_add_explicit(&hold->words->requests, 1, memory_order_relaxed);
}

/* Without a share of its own, a batch lane has the time between lasting holds, where there is some.
 */
static bool is_lasting(const struct hold_demand *demand, enum hold_kind kind, uint64_t now)
{
    return kind == HOLD_LASTING ||
           (hold_demand_is_high(demand, now) && !hold_demand_is_full(demand, now));
}

static void try_behind(struct context_hold *hold, const struct stream *stream)
{
    struct hold_demand *demand = &stream->device->launch->hold_demand;
    uint64_t now = clock_ns();

    hold_demand_note(demand, now);
    bool lasts = is_lasting(demand, kind_allowed(stream->session->server), now);
    if (lasts)
        lengthen(hold);
    if (hold->unavailable)
        return;
    leave_stuck(hold, now);
    if (!is_free(hold) || (!lasts && !hold_budget_take(&hold->budget, now)))
        return;
    CUresult result = begin_behind(hold, stream, lasts);

    hold->asked[hold->next] = now;
    hold->next = (hold->next + 1) % HOLDS;
    log_hold(hold, stream->device, result);
}

bool context_hold_is_for(const struct session *session)
{
    return kind_allowed(session->server) != HOLD_NONE && session->limits.class == CLASS_CRITICAL;
}

static bool is_wanted(const struct stream *stream)
{
    return context_hold_is_for(stream->session) && stream->device->launch->hold && stream->driver &&
           !stream_is_confined(stream) && fence_pending(stream);
}

/* Where another client of the device begins one, this one has it as well. */
static void hold_behind(struct stream *stream)
{
    struct context_hold *hold = stream->device->launch->hold;

    if (pthread_mutex_trylock(&hold->lock))
        return;
    try_behind(hold, stream);
    pthread_mutex_unlock(&hold->lock);
}

void context_hold_behind(struct stream *stream)
{
    uint32_t fence = fence_expected(stream);

    if (!is_wanted(stream) ||
        (stream->launch->held && !fence_word_reached(stream, stream->launch->held)))
        return;
    stream->launch->held = fence;
    hold_behind(stream);
}

/* While there is more work behind that fence, the GPU stays without a hold. Behind a copy a hold is
 * too late, because no kernel keeps the GPU during the copy. */
static bool is_last_kernel(const struct stream *stream, uint32_t seq)
{
    return seq == fence_expected(stream) && stream_ends_in_kernels(stream);
}

CUresult serve_fnHold(struct session *session, const struct wire_fnHold *in, struct stream *hStream)
{
    CUresult result = session_enter(session, hStream->device);

    if (result == CUDA_SUCCESS && is_last_kernel(hStream, in->seq))
        context_hold_behind(hStream);
    return result;
}

/* ---- whether the batch lane needs its share ---- */

static bool demand_is_full(const struct server *server)
{
    uint64_t now = clock_ns();

    for (unsigned i = 0; i < server->devices.count; i++) {
        if (hold_demand_is_full(&server->devices.device[i].launch->hold_demand, now))
            return true;
    }
    return false;
}

/* Partner: context_hold_demand_is_news(). */
bool context_hold_tell_demand(struct server *server)
{
    bool full = demand_is_full(server);

    atomic_store_explicit(&server->launch->demand_told, full, memory_order_relaxed);
    return full;
}

/* Partner: context_hold_tell_demand(). */
bool context_hold_demand_is_news(const struct server *server)
{
    return demand_is_full(server) !=
           atomic_load_explicit(&server->launch->demand_told, memory_order_relaxed);
}
