/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client that arrives during a step waits for its end: a millisecond for a partition, about as
 * much for the memory of a window. So clients are checked before each step.
 */
#include "upkeep.h"

#include <time.h>

#include "capacity.h"
#include "cleanup.h"
#include "clock.h"
#include "context_limit.h"
#include "fence.h"
#include "gate.h"
#include "log.h"
#include "long_work_watch.h"
#include "memory.h"
#include "partition.h"
#include "server_life.h"
#include "server_module.h"
#include "session_life.h"
#include "suspend.h"
#include "swap.h"
#include "window.h"

/* After this time without clients the server is trimmed, so that programs started one after another
 * still find the cached objects. */
#define EMPTY_NS (3 * NS_PER_SEC)

/* The timeout until all clients are suspended. */
#define REST_TIMEOUT_NS (20 * NS_PER_MS)

/* A client that launches and waits is idle at some time within this period. */
#define PEEK_NS (5 * NS_PER_MS)

/* If the clients' work was not done within this time, a retry would fail, too. */
#define SURPLUS_TRIM_NS (10 * NS_PER_MS)
#define IDLE_PAUSE_NS (200 * NS_PER_US)
#define SURPLUS_RETRY_NS (1 * NS_PER_SEC)

/* A check of all fences of all clients takes a while, so only every fifth round does it. */
#define BUSY_CHECK_ROUNDS 5u

static bool is_at_work(const struct session *session)
{
    return session->phase == SESSION_SERVING && fence_any_pending(session);
}

/* A client that attaches will soon be busy. */
static bool is_busy(const struct session *session)
{
    return session->phase == SESSION_ATTACHING || is_at_work(session);
}

static bool has_session(struct server *server, bool (*is)(const struct session *session))
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    list_for_each (struct session, session, &server->sessions, link) {
        if (is(session))
            return true;
    }
    return false;
}

bool server_is_busy(struct server *server)
{
    return has_session(server, is_busy);
}

/* In the last 200 ms: copy_load.c looks fifty times a second. */
static bool has_worked(const struct session *session)
{
    return session->life->load.busy_samples > 0;
}

static bool may_suspend(struct server *server, struct upkeep *upkeep)
{
    bool clients_work = has_session(server, has_worked);

    return upkeep_budget_allows(&upkeep->budget, clock_ns(), clients_work);
}

static void suspend_clients(struct server *server, struct upkeep *upkeep,
                            struct exclusive_call *call)
{
    upkeep->suspended_at = clock_ns();
    suspend_all(server, call, REST_TIMEOUT_NS);
}

static void resume_clients(struct server *server, struct upkeep *upkeep,
                           struct exclusive_call *call)
{
    suspend_all_end(server, call);
    upkeep_budget_spend(&upkeep->budget, clock_ns() - upkeep->suspended_at);
}

/* Runs `step` if no client is at work. Returns whether it did something. A kernel launched between
 * the check of the clients and the exclusive call would block all clients, so they are suspended.
 */
static bool step_in_between(struct server *server, struct upkeep *upkeep,
                            bool (*step)(struct server *server))
{
    struct exclusive_call call;

    if (server_is_busy(server) || !may_suspend(server, upkeep))
        return false;
    suspend_clients(server, upkeep, &call);
    bool taken = !server_is_busy(server) && step(server);
    resume_clients(server, upkeep, &call);
    return taken;
}

/* Unloading a library takes about as long as a short kernel. */
static bool unload_library(struct server *server)
{
    return module_cache_unload(server_module_cache(server));
}

static void unload_libraries(struct server *server, struct upkeep *upkeep)
{
    while (module_cache_has_unloads(server_module_cache(server)) &&
           step_in_between(server, upkeep, unload_library))
        ;
}

static struct device *find_short_of_capacity(struct server *server)
{
    for (unsigned i = 0; i < server->devices.count; i++)
        if (capacity_is_low(&server->devices.device[i]))
            return &server->devices.device[i];
    return NULL;
}

/* Some milliseconds. */
static bool renew_capacity(struct server *server)
{
    const struct device *device = find_short_of_capacity(server);

    if (!device || device_enter(device) != CUDA_SUCCESS || !gate_try_close(device->gate))
        return false;
    capacity_refill(device);
    gate_open(device->gate);
    return !capacity_is_low(device);
}

static void renew_capacities(struct server *server, struct upkeep *upkeep)
{
    while (find_short_of_capacity(server) && step_in_between(server, upkeep, renew_capacity))
        ;
}

/* Some milliseconds. */
static bool renew_window(struct server *server)
{
    if (!gate_try_close(server->devices.gate))
        return false;
    bool renewed = windows_trim(server_windows(server));
    gate_open(server->devices.gate);
    return renewed;
}

static void renew_windows(struct server *server, struct upkeep *upkeep)
{
    struct windows *windows = server_windows(server);

    if (device_enter(&server->devices.device[0]) == CUDA_SUCCESS)
        while (windows_have_used(windows) && step_in_between(server, upkeep, renew_window))
            ;
    while (!server_is_busy(server) && windows_warm(windows))
        ;
}

static void forget_pauses(struct server *server)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    list_for_each (struct session, session, &server->sessions, link)
        session->life->load.paused = false;
}

static bool have_paused(struct server *server)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);
    bool all = true;

    list_for_each (struct session, session, &server->sessions, link) {
        session->life->load.paused |= !is_at_work(session);
        all &= session->life->load.paused;
    }
    return all;
}

/* Whether each client was idle at some time. While one runs a long kernel, suspending the others
 * would be in vain. */
static bool clients_pause(struct server *server)
{
    const struct timespec pause = {.tv_nsec = IDLE_PAUSE_NS};
    uint64_t deadline = clock_ns() + PEEK_NS;
    bool paused;

    forget_pauses(server);
    while (!(paused = have_paused(server)) && clock_ns() < deadline)
        nanosleep(&pause, NULL);
    return paused;
}

static bool await_idle(struct server *server, uint64_t deadline)
{
    const struct timespec pause = {.tv_nsec = IDLE_PAUSE_NS};

    while (has_session(server, is_at_work)) {
        if (clock_ns() >= deadline)
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

static bool trim_windows_until(struct server *server, uint64_t end)
{
    struct windows *windows = server_windows(server);

    if (!gate_try_close(server->devices.gate))
        return false;
    while (windows_trim(windows) && clock_ns() < end)
        ;
    gate_open(server->devices.gate);
    return true;
}

static bool give_back_until(struct server *server, uint64_t end)
{
    if (!trim_windows_until(server, end))
        return false;
    while (clock_ns() < end && module_cache_unload(server_module_cache(server)))
        ;
    return !find_short_of_capacity(server) || renew_capacity(server);
}

static bool is_over_budget(struct server *server)
{
    return windows_are_over_budget(server_windows(server)) ||
           module_cache_is_over_budget(server_module_cache(server)) ||
           find_short_of_capacity(server);
}

/* This costs clients with frequent pauses some 10 ms. */
static bool give_back_between(struct server *server, struct upkeep *upkeep)
{
    uint64_t deadline = clock_ns() + REST_TIMEOUT_NS;
    struct exclusive_call call;

    suspend_clients(server, upkeep, &call);
    bool done =
        await_idle(server, deadline) && give_back_until(server, clock_ns() + SURPLUS_TRIM_NS);
    resume_clients(server, upkeep, &call);
    return done;
}

static void free_surplus(struct server *server, struct upkeep *upkeep)
{
    if (clock_ns() < upkeep->retry_at || !is_over_budget(server) || !may_suspend(server, upkeep) ||
        !clients_pause(server) || device_enter(&server->devices.device[0]) != CUDA_SUCCESS)
        return;
    if (!give_back_between(server, upkeep))
        upkeep->retry_at = clock_ns() + SURPLUS_RETRY_NS;
}

static void make_spares(struct server *server)
{
    for (unsigned i = 0; i < server->devices.count; i++) {
        if (!partitions_want_spare(&server->partitions[i]) ||
            device_enter(&server->devices.device[i]) != CUDA_SUCCESS)
            continue;
        while (!server_is_busy(server) && partitions_make_spare(&server->partitions[i]))
            log_debug("A partition of device %u is created in advance", i);
    }
}

static void trim_swap(struct server *server)
{
    if (device_enter(&server->devices.device[0]) == CUDA_SUCCESS)
        swap_trim(server);
}

static bool trim_device(struct server *server, unsigned index)
{
    if (device_enter(&server->devices.device[index]) != CUDA_SUCCESS)
        return false;
    partitions_trim(&server->partitions[index]);
    module_cache_trim(server_module_cache(server), &server->devices.device[index]);
    return server_is_empty(server) &&
           context_limits_restore(server, &server->devices.device[index]);
}

/* False when a client has come. */
static bool trim(struct server *server)
{
    for (unsigned i = 0; i < server->devices.count; i++) {
        if (!trim_device(server, i))
            return false;
    }
    return true;
}

static void trim_empty_server(struct server *server, struct upkeep *upkeep)
{
    uint64_t now = clock_ns();

    if (!upkeep->empty_at)
        upkeep->empty_at = now;
    if (upkeep->trimmed || now - upkeep->empty_at < EMPTY_NS)
        return;
    admission_block(server);
    upkeep->trimmed = trim(server);
    trim_swap(server);
    admission_unblock(server);
    log_debug("There are no clients: cached objects are released");
}

void upkeep_run(struct server *server, struct upkeep *upkeep)
{
    bool look = upkeep->round++ % BUSY_CHECK_ROUNDS == 0;

    if (look) {
        unload_libraries(server, upkeep);
        long_work_watch(server);
        renew_windows(server, upkeep);
        renew_capacities(server, upkeep);
        free_surplus(server, upkeep);
    }
    if (server_is_empty(server)) {
        trim_empty_server(server, upkeep);
        return;
    }
    upkeep->empty_at = 0;
    upkeep->trimmed = false;
    if (look && !server->life->no_spare_partitions)
        make_spares(server);
}
