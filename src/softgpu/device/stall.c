/* SPDX-License-Identifier: Apache-2.0 */
/* See soft_stall.h. There is one lock for all contexts, which is stricter than NVIDIA's driver. */
#include "soft_stall.h"

#include "soft_entry.h"
#include "switch.h"

unsigned soft_stalling;

static bool like_hardware;
static pthread_cond_t passed = PTHREAD_COND_INITIALIZER;

__attribute__((constructor)) static void read_switch(void)
{
    like_hardware = switch_is_on("FUNNEL_SOFT_STALLS");
}

void soft_stand_aside(void)
{
    SOFT_LOCKED;
    while (soft_stalling)
        pthread_cond_wait(&passed, &soft_lock);
}

static void count_locked(int change)
{
    __atomic_add_fetch(&soft_stalling, change, __ATOMIC_RELAXED);
    if (!soft_stalling)
        pthread_cond_broadcast(&passed);
}

CUresult stall_locked(struct context *context)
{
    CUresult result;

    if (!like_hardware)
        return context_synchronise_locked(context);
    count_locked(1);
    result = context_synchronise_locked(context);
    count_locked(-1);
    return result;
}

void stall_like_hardware_locked(struct context *context)
{
    if (like_hardware)
        stall_locked(context);
}
