/* SPDX-License-Identifier: Apache-2.0 */
/* See device_sync.h. There is one lock for all contexts, which is stricter than NVIDIA's driver. */
#include "device_sync.h"

#include "switch.h"

unsigned soft_device_syncs;

static bool like_hardware;
static pthread_cond_t passed = PTHREAD_COND_INITIALIZER;

__attribute__((constructor)) static void read_switch(void)
{
    like_hardware = switch_is_on("FUNNEL_SOFT_STALLS");
}

void soft_device_sync_wait(void)
{
    SOFT_LOCKED;
    while (soft_device_syncs)
        pthread_cond_wait(&passed, &soft_lock);
}

static void count_locked(int change)
{
    __atomic_add_fetch(&soft_device_syncs, change, __ATOMIC_RELAXED);
    if (!soft_device_syncs)
        pthread_cond_broadcast(&passed);
}

CUresult device_sync_locked(struct context *context)
{
    CUresult result;

    if (!like_hardware)
        return context_synchronize_locked(context);
    count_locked(1);
    result = context_synchronize_locked(context);
    count_locked(-1);
    return result;
}

void device_sync_emulate_locked(struct context *context)
{
    if (like_hardware)
        device_sync_locked(context);
}
