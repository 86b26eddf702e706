/* SPDX-License-Identifier: Apache-2.0 */
/* Each device has a stack of its own, since an event belongs to a context. */
#include "spare_events.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "cleanup.h"
#include "loader.h"

/* Of one device. With more in use at a time, the surplus is created and destroyed. */
#define KEPT_MAX 1024u

struct spare_events {
    pthread_mutex_t lock;
    CUevent events[KEPT_MAX];
    unsigned count;
};

struct spare_events *spare_events_create(void)
{
    struct spare_events *spare = calloc(1, sizeof(*spare));

    if (spare)
        pthread_mutex_init(&spare->lock, NULL);
    return spare;
}

void spare_events_destroy(struct spare_events *spare)
{
    free(spare);
}

static bool take(struct spare_events *spare, CUevent *ret_event)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&spare->lock);

    if (!spare->count)
        return false;
    *ret_event = spare->events[--spare->count];
    return true;
}

static bool keep(struct spare_events *spare, CUevent event)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&spare->lock);

    if (spare->count == KEPT_MAX)
        return false;
    spare->events[spare->count++] = event;
    return true;
}

CUresult spare_event_take(const struct device *device, CUevent *ret_event)
{
    if (take(device->events, ret_event))
        return CUDA_SUCCESS;
    return driver.cuEventCreate(ret_event, CU_EVENT_DISABLE_TIMING);
}

void spare_event_keep(const struct device *device, CUevent event)
{
    if (!keep(device->events, event))
        driver.cuEventDestroy_v2(event);
}
