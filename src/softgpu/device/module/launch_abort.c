/* SPDX-License-Identifier: Apache-2.0 */
/* See launch_abort.h. */
#include "launch_abort.h"

#include <stdio.h>

#include "exec.h"
#include "soft_context.h"
#include "soft_extension.h"
#include "switch.h"

static struct list launches = {&launches, &launches};
static __thread uint64_t current_owner;
static bool as_hardware, one_heap;

__attribute__((constructor)) static void read_switches(void)
{
    as_hardware = switch_is_on("FUNNEL_SOFT_NO_ABORT");
    one_heap = switch_is_on("FUNNEL_SOFT_ONE_HEAP");
}

void owned_launch_add_locked(struct owned_launch *launch, const char *kernel, const void *user)
{
    *launch = (struct owned_launch){.owner = current_owner, .kernel = kernel, .user = user};
    list_append(&launches, &launch->in_all);
}

uint64_t owned_launch_for(uint64_t owner)
{
    uint64_t before = current_owner;

    current_owner = owner;
    return before;
}

void owned_launch_remove_locked(struct owned_launch *launch)
{
    if (launch->in_all.next)
        list_remove(&launch->in_all);
}

/* A launch without an engine is queued; it finishes when its turn comes. */
static void abort_locked(struct owned_launch *launch, char *ret_kernel, size_t size)
{
    launch->aborted = true;
    if (!launch->engine)
        return;
    if (!*ret_kernel)
        snprintf(ret_kernel, size, "%s", launch->kernel);
    sg_engine_abort_launch(launch->engine, launch->user);
}

void funnelSetLaunchOwner(uint64_t owner)
{
    current_owner = owner;
}

uint64_t owned_launch_heap(const struct owned_launch *launch)
{
    return one_heap ? 0 : launch->owner;
}

CUresult funnelForgetLaunchOwner(uint64_t owner)
{
    if (one_heap)
        return CUDA_ERROR_NOT_SUPPORTED;
    SOFT_LOCKED;
    contexts_forget_owner_locked(owner);
    return CUDA_SUCCESS;
}

CUresult funnelAbortLaunches(uint64_t owner, char *ret_kernel, size_t size)
{
    if (!owner || !ret_kernel || !size)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_kernel = '\0';
    if (as_hardware)
        return CUDA_ERROR_NOT_SUPPORTED;
    SOFT_LOCKED;
    list_for_each (struct owned_launch, launch, &launches, in_all) {
        if (launch->owner == owner && !launch->aborted)
            abort_locked(launch, ret_kernel, size);
    }
    return CUDA_SUCCESS;
}
