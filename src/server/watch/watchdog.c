/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client that waits for a fence makes no call that could fail. So this thread queries an idle
 * stream of every device some fifty times a second, to detect a lost context.
 */
#include "watchdog.h"

#include <pthread.h>
#include <time.h>

#include "abort_launches.h"
#include "channel_groups.h"
#include "clock.h"
#include "context_hold.h"
#include "copy_load.h"
#include "cuda_error.h"
#include "early_report.h"
#include "eviction.h"
#include "lending.h"
#include "long_work_watch.h"
#include "rest_eviction.h"
#include "session_leave.h"
#include "stall.h"
#include "upkeep.h"

#define PERIOD_NS (20 * NS_PER_MS)
#define MEMORY_ROUNDS 50u

static void query_device(struct server *server, const struct device *device)
{
    CUresult result = device_enter(device);

    if (result == CUDA_SUCCESS)
        result = driver.cuStreamQuery(device->watch);
    if (cuda_error_is_fatal(result))
        server->on_fatal(server, NULL, result);
}

/* For status rows, because the main thread makes no call that may wait. */
static void sample_free_memory(struct device *device)
{
    size_t free_bytes, total;

    if (!device_enter(device) && !driver.cuMemGetInfo_v2(&free_bytes, &total))
        device->memory_free = free_bytes;
}

static void *watchdog_thread(void *context)
{
    struct server *server = context;
    const struct timespec period = {.tv_nsec = PERIOD_NS};
    struct upkeep upkeep = {0};
    struct sharing_watch sharing = {0};

    for (unsigned round = 0;; round++) {
        for (unsigned i = 0; i < server->devices.count; i++) {
            struct device *device = &server->devices.device[i];
            if (!server_is_empty(server))
                query_device(server, device);
            if (round % MEMORY_ROUNDS == 0)
                sample_free_memory(device);
        }
        copy_load_update(server);
        abort_launches_of_the_gone(server);
        channel_groups_apply();
        lending_watch(server);
        eviction_watch(server);
        rest_eviction_watch(server);
        session_leave_watch(server);
        upkeep_run(server, &upkeep);
        if (long_work_is_news(server) || context_hold_demand_is_news(server))
            stall_watch_hurry(server);
        early_report_watch(server, &sharing);
        nanosleep(&period, NULL);
    }
    return NULL;
}

int watchdog_start(struct server *server)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, watchdog_thread, server);

    if (!error)
        pthread_detach(thread);
    return -error;
}
