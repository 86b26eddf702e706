/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Primary contexts: one a device, shared by everybody in the process. Its handle never changes; it
 * is active as long as the program retains it.
 */
#include "cudart.h"
#include "soft_context.h"

CUresult soft_cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
    struct device *device = device_get(dev);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    SOFT_LOCKED;
    CUresult result = device->lost ? device->lost : context_activate_locked(device->primary);

    if (result)
        return result;
    device->primary->retains++;
    *pctx = (CUcontext)device->primary->handle;
    return CUDA_SUCCESS;
}

/* The libraries' attachments to the context go first, without the lock: they call back into the
 * driver. */
static void give_up(struct context *context)
{
    cudart_context_gone((CUcontext)context->handle);
    SOFT_LOCKED;
    context_deactivate_locked(context);
}

CUresult soft_cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
    struct device *device = device_get(dev);
    bool was_last;

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&soft_lock);
    unsigned retains = device->primary->retains;

    was_last = retains == 1;
    if (retains > 0)
        device->primary->retains--;
    pthread_mutex_unlock(&soft_lock);
    if (!retains)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (was_last)
        give_up(device->primary);
    return CUDA_SUCCESS;
}

CUresult soft_cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
    struct device *device = device_get(dev);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    give_up(device->primary);
    return CUDA_SUCCESS;
}

CUresult soft_cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
    struct device *device = device_get(dev);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    SOFT_LOCKED;
    *flags = device->primary->flags;
    *active = device->primary->active;
    return CUDA_SUCCESS;
}

CUresult soft_cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
    struct device *device = device_get(dev);

    if (flags & ~CU_CTX_FLAGS_MASK)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    SOFT_LOCKED;
    device->primary->flags = flags;
    return CUDA_SUCCESS;
}
