/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stack for each device, since an event belongs to a context.
 */
#include "spare_events.h"

#include <pthread.h>
#include <stdbool.h>

#include "cleanup.h"
#include "loader.h"

/* Of one device. Those who have more in use at a time pay for them. */
#define KEPT_MAX 1024u

static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    CUevent events[KEPT_MAX];
    unsigned count;
} kept[ATTACH_DEVICES_MAX];

static bool take(unsigned ordinal, CUevent *ret_event)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&kept_lock);

    if (!kept[ordinal].count)
        return false;
    *ret_event = kept[ordinal].events[--kept[ordinal].count];
    return true;
}

static bool keep(unsigned ordinal, CUevent event)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&kept_lock);

    if (kept[ordinal].count == KEPT_MAX)
        return false;
    kept[ordinal].events[kept[ordinal].count++] = event;
    return true;
}

CUresult spare_event_take(const struct device *device, CUevent *ret_event)
{
    if (take((unsigned)device->ordinal, ret_event))
        return CUDA_SUCCESS;
    return driver.cuEventCreate(ret_event, CU_EVENT_DISABLE_TIMING);
}

void spare_event_keep(const struct device *device, CUevent event)
{
    if (!keep((unsigned)device->ordinal, event))
        driver.cuEventDestroy_v2(event);
}
