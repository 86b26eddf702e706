/* SPDX-License-Identifier: Apache-2.0 */
/* See swap_ahead.h. */
#include "swap_ahead.h"

#include <pthread.h>
#include <time.h>

#include "cleanup.h"
#include "clock.h"
#include "eviction.h"
#include "memory.h"
#include "quota.h"
#include "server_life.h"
#include "swap.h"

#define PERIOD_NS (200 * NS_PER_MS)

/* A device with less free memory than one part in so many is nearly full. */
#define FREE_PART 4u

static bool is_nearly_full(const struct device *device)
{
    return device->memory_free < device->record.total_memory / FREE_PART;
}

/* What may leave a device while another client has some. */
static uint64_t count_on_device_locked(const struct server *server, unsigned index)
{
    uint64_t bytes = 0, used, peak;
    unsigned clients = 0;

    list_for_each (struct session, session, &server->sessions, link) {
        memory_usage(session, index, &used, &peak);
        if (session->phase != SESSION_SERVING || !eviction_takes_part(session))
            continue;
        clients++;
        bytes += used;
    }
    return clients > 1 ? bytes : 0;
}

/* Of the first device that is nearly full. */
static const struct device *find_full_device(struct server *server, uint64_t *ret_bytes)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    for (unsigned i = 0; i < server->devices.count; i++) {
        *ret_bytes = count_on_device_locked(server, i);
        if (*ret_bytes && is_nearly_full(&server->devices.device[i]))
            return &server->devices.device[i];
    }
    return NULL;
}

/* Other calls of the driver get as much time as this one takes. */
static bool lock_some(struct server *server)
{
    uint64_t bytes, most = quota(QUOTA_SWAP_AHEAD), began = clock_ns();
    const struct device *device = find_full_device(server, &bytes);

    if (!device || device_enter(device) != CUDA_SUCCESS ||
        !swap_lock_ahead(server, device, bytes < most ? bytes : most))
        return false;
    uint64_t ns = clock_ns() - began;
    const struct timespec pause = {(time_t)(ns / NS_PER_SEC), (long)(ns % NS_PER_SEC)};
    nanosleep(&pause, NULL);
    return true;
}

static void *run_thread(void *context)
{
    const struct timespec period = {.tv_nsec = PERIOD_NS};
    struct server *server = context;

    for (;;) {
        while (lock_some(server))
            ;
        nanosleep(&period, NULL);
    }
    return NULL;
}

int swap_ahead_start(struct server *server)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, run_thread, server);

    if (!error)
        pthread_detach(thread);
    return -error;
}
