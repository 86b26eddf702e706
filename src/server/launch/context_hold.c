/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two holds may be in the stream at a time: one that ends, and one behind the next request. Their
 * events say which are over. A hold that the driver refuses in part ends the holds of the device,
 * as a fault does.
 */
#include "context_hold.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "cleanup.h"
#include "client_class.h"
#include "clock.h"
#include "fence.h"
#include "hold_budget.h"
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
#define WORDS_SIZE 4096u
#define PAUSE_NS 100000u
#define HOLDS 2u

struct context_hold {
    pthread_mutex_t lock; /* of all below */
    CUfunction pause;
    uint32_t *word;  /* page-locked; what the GPU writes there is of no use */
    CUstream stream; /* created for the first hold */
    CUevent begins;
    CUevent ends[HOLDS]; /* NULL: that hold has never begun */
    unsigned next;
    bool unavailable, logged;
    struct hold_budget budget;
};

/* Short sleeps, because the length of one is not exact. */
static const char ptx[] = ".version 6.4\n"
                          ".target sm_70\n"
                          ".address_size 64\n"
                          ".visible .entry " NAME "(.param .u64 ns)\n"
                          "{\n"
                          "    .reg .u64 %ns, %begin, %now;\n"
                          "    .reg .pred %over;\n"
                          "    ld.param.u64 %ns, [ns];\n"
                          "    mov.u64 %begin, %globaltimer;\n"
                          "AGAIN:\n"
                          "    mov.u64 %now, %globaltimer;\n"
                          "    sub.u64 %now, %now, %begin;\n"
                          "    setp.ge.u64 %over, %now, %ns;\n"
                          "    @%over bra OVER;\n"
                          "    nanosleep.u32 10000;\n"
                          "    bra AGAIN;\n"
                          "OVER:\n"
                          "    ret;\n"
                          "}\n";

/* ---- the life of a device ---- */

static CUresult lock_word(struct server *server, struct context_hold *hold)
{
    void *page = mmap(NULL, WORDS_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    hold->word = page;
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
        result = lock_word(server, hold);
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

/* The word stays: the GPU may still write to it, and the process ends. */
void context_hold_unload(struct device *device)
{
    struct context_hold *hold = steal_pointer(device->launch->hold);

    if (!hold)
        return;
    pthread_mutex_destroy(&hold->lock);
    free(hold);
}

/* Partner: context_hold_is_for(). */
void context_hold_allow(struct server *server, bool allowed)
{
    atomic_store_explicit(&server->launch->holds_allowed, allowed, memory_order_relaxed);
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

static CUresult launch_pause(const struct context_hold *hold, uint64_t ns)
{
    const CUlaunchConfig config = {1, 1, 1, 1, 1, 1, .hStream = hold->stream};
    void *params[] = {&ns};

    return driver.cuLaunchKernelEx(&config, hold->pause, params, NULL);
}

static CUresult begin_behind(struct context_hold *hold, const struct stream *stream)
{
    CUresult result = prepare(hold, stream->device);

    if (result == CUDA_SUCCESS)
        result = driver.cuEventRecord(hold->begins, stream->driver);
    if (result == CUDA_SUCCESS)
        result = driver.cuStreamWaitEvent(hold->stream, hold->begins, 0);
    if (result == CUDA_SUCCESS)
        result = launch_pause(hold, PAUSE_NS);
    for (unsigned i = 0; i < WRITES && result == CUDA_SUCCESS; i++)
        result = driver.cuStreamWriteValue32_v2(hold->stream, (uintptr_t)hold->word, 0, 0);
    if (result == CUDA_SUCCESS)
        result = driver.cuEventRecord(hold->ends[hold->next], hold->stream);
    return result;
}

static bool is_free(const struct context_hold *hold)
{
    CUevent before = hold->ends[hold->next];

    return !before || driver.cuEventQuery(before) == CUDA_SUCCESS;
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

static void try_behind(struct context_hold *hold, const struct stream *stream)
{
    if (hold->unavailable || !is_free(hold) || !hold_budget_take(&hold->budget, clock_ns()))
        return;
    CUresult result = begin_behind(hold, stream);

    hold->next = (hold->next + 1) % HOLDS;
    log_hold(hold, stream->device, result);
}

/* Partner: context_hold_allow(). */
bool context_hold_is_for(const struct session *session)
{
    return atomic_load_explicit(&session->server->launch->holds_allowed, memory_order_relaxed) &&
           session->limits.class == CLASS_CRITICAL;
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

    if (!is_wanted(stream) || stream->launch->held == fence)
        return;
    stream->launch->held = fence;
    hold_behind(stream);
}

/* While there is more work behind that fence, the GPU stays without a hold. */
CUresult serve_fnHold(struct session *session, const struct wire_fnHold *in, struct stream *hStream)
{
    CUresult result = session_enter(session, hStream->device);

    if (result == CUDA_SUCCESS && in->seq == fence_expected(hStream))
        context_hold_behind(hStream);
    return result;
}
