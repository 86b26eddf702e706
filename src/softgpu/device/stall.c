/* SPDX-License-Identifier: Apache-2.0 */
/* See soft_stall.h. A call enters the lock of the context that is current in its thread. */
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

static bool current_stalls_locked(void)
{
    struct context *context;

    return context_current_locked(&context) == CUDA_SUCCESS && context->stalling;
}

void soft_stand_aside(void)
{
    SOFT_LOCKED;
    while (current_stalls_locked())
        pthread_cond_wait(&passed, &soft_lock);
}

static void count_locked(struct context *context, int change)
{
    __atomic_add_fetch(&soft_stalling, change, __ATOMIC_RELAXED);
    context->stalling += (unsigned)change;
    if (!context->stalling)
        pthread_cond_broadcast(&passed);
}

CUresult stall_locked(struct context *context)
{
    CUresult result;

    if (!like_hardware)
        return context_synchronise_locked(context);
    count_locked(context, 1);
    result = context_synchronise_locked(context);
    count_locked(context, -1);
    return result;
}

void stall_like_hardware_locked(struct context *context)
{
    if (like_hardware)
        stall_locked(context);
}
