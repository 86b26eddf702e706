/* SPDX-License-Identifier: Apache-2.0 */
/* See device_sync.h. A call enters the lock of the context that is current in its thread. */
#include "device_sync.h"

#include "switch.h"

#define BLOCK_CAPACITY 43u
#define FIRST_CAPACITY 34u /* that come with the context */

atomic_uint soft_device_syncs;

static bool like_hardware;
static pthread_cond_t passed = PTHREAD_COND_INITIALIZER;

__attribute__((constructor)) static void read_switch(void)
{
    like_hardware = switch_is_on("FUNNEL_SOFT_STALLS");
}

static bool current_is_taken_locked(void)
{
    struct context *context;

    return context_current_locked(&context) == CUDA_SUCCESS && context->device_syncs;
}

void soft_device_sync_wait(void)
{
    SOFT_LOCKED;
    while (current_is_taken_locked())
        pthread_cond_wait(&passed, &soft_lock);
}

static void count_locked(struct context *context, int change)
{
    atomic_fetch_add_explicit(&soft_device_syncs, (unsigned)change, memory_order_relaxed);
    context->device_syncs += (unsigned)change;
    if (!context->device_syncs)
        pthread_cond_broadcast(&passed);
}

CUresult device_sync_locked(struct context *context)
{
    CUresult result;

    if (!like_hardware)
        return context_synchronize_locked(context);
    count_locked(context, 1);
    result = context_synchronize_locked(context);
    count_locked(context, -1);
    return result;
}

void device_sync_emulate_locked(struct context *context)
{
    if (like_hardware)
        device_sync_locked(context);
}

void device_block_take_locked(struct context *context)
{
    if (++context->blocks_used <= FIRST_CAPACITY + context->blocks_capacity)
        return;
    context->blocks_capacity += BLOCK_CAPACITY;
    device_sync_emulate_locked(context);
}

void device_block_give_locked(struct context *context)
{
    if (context->blocks_used)
        context->blocks_used--;
}
