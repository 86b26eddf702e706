/* SPDX-License-Identifier: Apache-2.0 */
/* Making contexts, and ending all that they own; see context_lifetime.h. */
#include "context_lifetime.h"

#include <stdatomic.h>

#include "affinity.h"
#include "client_array.h"
#include "client_context.h"
#include "client_event.h"
#include "client_memory.h"
#include "client_module.h"
#include "client_profile.h"
#include "client_prototypes.h"
#include "client_stream.h"
#include "client_texture.h"
#include "client_thread.h"
#include "cudart.h"
#include "recovery_hook.h"
#include "stream_join.h"
#include "stream_wait.h"

/* Ends everything that the context owns. A profiler and libraries are called back first, while what
 * they have attached to still exists. */
static void context_empty(struct context *context)
{
    client_profile_resource(&(struct profiler_resource){
        .kind = PROFILER_CONTEXT_ENDS,
        .context = context->handle,
    });
    cudart_context_gone(context->handle);
    if (client_error() == CUDA_SUCCESS)
        stream_synchronize_context(context);
    stream_join_end(context);
    event_destroy_all(context);
    stream_destroy_all(context);
    affinity_release(context);
    module_unload_all(context);
    texture_destroy_all(context);
    array_destroy_all(context);
    memory_free_all(context);
}

bool context_make_current(CUcontext handle)
{
    thread_keep();
    return context_stack_push(&thread_self()->stack, handle) == 0;
}

/* On some devices the server allows this client no context. */
static CUresult device_error(const struct device *device)
{
    CUresult error = recovery_client_error();

    return error != CUDA_SUCCESS ? error : (CUresult)device->record->context_status;
}

/* ---- primary contexts ---- */

CUresult client_cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
    struct device *device = device_lookup(dev);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    CUresult error = device_error(device);
    if (error != CUDA_SUCCESS)
        return error;
    pthread_mutex_lock(&client->lock);
    device->primary->retained++;
    atomic_store_explicit(&device->primary->active, true, memory_order_release);
    pthread_mutex_unlock(&client->lock);
    *pctx = device->primary->handle;
    return CUDA_SUCCESS;
}

static void deactivate(struct context *context)
{
    context_empty(context);
    pthread_mutex_lock(&client->lock);
    context->epoch++;
    if (context->retained == 0)
        atomic_store_explicit(&context->active, false, memory_order_release);
    pthread_mutex_unlock(&client->lock);
}

CUresult client_cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
    struct device *device = device_lookup(dev);
    bool last;

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&client->lock);
    if (device->primary->retained == 0) {
        pthread_mutex_unlock(&client->lock);
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    last = --device->primary->retained == 0;
    pthread_mutex_unlock(&client->lock);
    if (last)
        deactivate(device->primary);
    return CUDA_SUCCESS;
}

CUresult client_cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
    struct device *device = device_lookup(dev);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!context_active(device->primary))
        return CUDA_SUCCESS;
    pthread_mutex_lock(&client->lock);
    device->primary->retained = 0;
    pthread_mutex_unlock(&client->lock);
    deactivate(device->primary);
    return CUDA_SUCCESS;
}

CUresult client_cuDevicePrimaryCtxGetState(CUdevice dev, unsigned *flags, int *active)
{
    struct device *device = device_lookup(dev);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    *flags = device->primary->flags;
    *active = context_active(device->primary);
    return CUDA_SUCCESS;
}

bool context_flags_are_valid(unsigned flags)
{
    unsigned schedule = flags & CU_CTX_SCHED_MASK;

    return (flags & ~(unsigned)CU_CTX_FLAGS_MASK) == 0 && schedule != 3 && schedule < 5;
}

CUresult client_cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned flags)
{
    struct device *device = device_lookup(dev);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!context_flags_are_valid(flags))
        return CUDA_ERROR_INVALID_VALUE;
    device->primary->flags = flags;
    return CUDA_SUCCESS;
}

/* ---- contexts that programs create ---- */

CUresult context_open(CUcontext *pctx, unsigned flags, CUdevice dev, uint32_t share,
                      uint32_t sm_count)
{
    struct device *device = device_lookup(dev);
    struct context *context;

    if (!pctx || !context_flags_are_valid(flags))
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    CUresult error = device_error(device);
    if (error != CUDA_SUCCESS)
        return error;
    context = context_create(device);
    if (!context)
        return CUDA_ERROR_OUT_OF_MEMORY;
    context->flags = flags;
    context->share = share;
    context->sm_count = sm_count;
    context->active = true;
    pthread_mutex_lock(&client->lock);
    list_append(&client->contexts, &context->link);
    pthread_mutex_unlock(&client->lock);
    if (!context_make_current(context->handle))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *pctx = context->handle;
    return CUDA_SUCCESS;
}

/* The structure itself is not freed: another thread may be in a call that uses it. */
CUresult client_cuCtxDestroy_v2(CUcontext ctx)
{
    struct context *context = context_lookup(ctx);
    struct thread *thread = thread_self();

    if (!context || context->primary || context->green)
        return CUDA_ERROR_INVALID_CONTEXT;
    context_empty(context);
    if (!handles_remove(&client->handles, CLIENT_CONTEXT, (uint64_t)ctx))
        return CUDA_ERROR_INVALID_CONTEXT;
    atomic_store_explicit(&context->active, false, memory_order_release);
    pthread_mutex_lock(&client->lock);
    list_remove(&context->link);
    pthread_mutex_unlock(&client->lock);
    if (context_stack_top(&thread->stack) == ctx)
        context_stack_pop(&thread->stack);
    return CUDA_SUCCESS;
}

/* ---- the references of CUDA 2 ---- */

CUresult client_cuCtxAttach(CUcontext *pctx, unsigned int flags)
{
    struct context *context;
    CUresult result = context_current(&context);

    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&client->lock);
    context->attached++;
    pthread_mutex_unlock(&client->lock);
    *pctx = context->handle;
    return CUDA_SUCCESS;
}

static bool drop_attached(struct context *context)
{
    bool dropped;

    pthread_mutex_lock(&client->lock);
    dropped = context->attached > 0;
    context->attached -= dropped;
    pthread_mutex_unlock(&client->lock);
    return dropped;
}

/* The last reference is the one that came with cuCtxCreate. */
CUresult client_cuCtxDetach(CUcontext ctx)
{
    struct context *context = context_lookup(ctx);

    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    return drop_attached(context) ? CUDA_SUCCESS : client_cuCtxDestroy_v2(ctx);
}
