/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts live in the client alone: the server has one real context on each GPU for everybody.
 * Here a context is the owner of streams, events, modules and memory, which end with it.
 */
#include <stdlib.h>

#include "cleanup.h"
#include "client_array.h"
#include "client_capture.h"
#include "client_context.h"
#include "client_event.h"
#include "client_memory.h"
#include "client_module.h"
#include "client_prototypes.h"
#include "client_stream.h"
#include "client_thread.h"
#include "cudart.h"

#define API_VERSION 3020

static struct context *context_create(struct device *device)
{
    struct context *context = calloc(1, sizeof(*context));

    if (!context)
        return NULL;
    context->device = device;
    context->id = client_next_id();
    context->version = API_VERSION;
    list_init(&context->link);
    list_init(&context->streams);
    list_init(&context->events);
    list_init(&context->modules);
    list_init(&context->arrays);
    context->handle = (CUcontext)handles_add(&client->handles, CLIENT_CONTEXT, context);
    if (!context->handle) {
        free(context);
        return NULL;
    }
    return context;
}

int context_init_primaries(void)
{
    for (int i = 0; i < client->device_count; i++) {
        struct context *context = context_create(&client->devices[i]);

        if (!context)
            return -1;
        context->primary = true;
        client->devices[i].primary = context;
        list_append(&client->contexts, &context->link);
    }
    return 0;
}

struct context *context_lookup(CUcontext handle)
{
    return handles_get(&client->handles, CLIENT_CONTEXT, (uint64_t)handle);
}

static CUresult usable(CUcontext handle, struct context **ret_context)
{
    struct context *context = context_lookup(handle);

    if (!context)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (!context_active(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    *ret_context = context;
    return CUDA_SUCCESS;
}

CUresult context_current(struct context **ret_context)
{
    CUcontext top = context_stack_top(&thread_self()->stack);

    return top ? usable(top, ret_context) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult context_enter(struct context **ret_context)
{
    CUresult result = client_error();

    return result != CUDA_SUCCESS ? result : context_current(ret_context);
}

CUresult context_enter_unsafe(struct context **ret_context)
{
    CUresult result = context_enter(ret_context);

    return result != CUDA_SUCCESS ? result : capture_check_unsafe();
}

CUresult context_resolve(CUcontext handle, struct context **ret_context)
{
    if (!handle)
        return context_current(ret_context);
    return usable(handle, ret_context) == CUDA_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

/* Ends everything that the context owns. Libraries get their keys back first, while what they
 * attached to is still there. */
static void context_empty(struct context *context)
{
    cudart_context_gone(context->handle);
    if (client_error() == CUDA_SUCCESS)
        stream_synchronize_context(context);
    event_destroy_all(context);
    stream_destroy_all(context);
    affinity_release(context);
    module_unload_all(context);
    texture_destroy_all(context);
    array_destroy_all(context);
    memory_free_all(context);
}

static bool make_current(CUcontext handle)
{
    thread_keep();
    return context_stack_push(&thread_self()->stack, handle) == 0;
}

/* On some devices this client can have no context at all. */
static CUresult device_error(const struct device *device)
{
    CUresult error = client_error();

    return error != CUDA_SUCCESS ? error : (CUresult)device->record->context_status;
}

/* ---- primary contexts ---- */

CUresult client_cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
    struct device *device = device_lookup(dev);

    if (!pctx)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    CUresult error = device_error(device);
    if (error != CUDA_SUCCESS)
        return error;
    pthread_mutex_lock(&client->lock);
    device->primary->retained++;
    __atomic_store_n(&device->primary->active, true, __ATOMIC_RELEASE);
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
        __atomic_store_n(&context->active, false, __ATOMIC_RELEASE);
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

    if (!flags || !active)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    *flags = device->primary->flags;
    *active = context_active(device->primary);
    return CUDA_SUCCESS;
}

static bool valid_flags(unsigned flags)
{
    unsigned schedule = flags & CU_CTX_SCHED_MASK;

    return (flags & ~(unsigned)CU_CTX_FLAGS_MASK) == 0 && schedule != 3 && schedule < 5;
}

CUresult client_cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned flags)
{
    struct device *device = device_lookup(dev);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!valid_flags(flags))
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

    if (!pctx || !valid_flags(flags))
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
    if (!make_current(context->handle))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *pctx = context->handle;
    return CUDA_SUCCESS;
}

/* The structure itself stays: another thread may be in the middle of a call on it. */
CUresult client_cuCtxDestroy_v2(CUcontext ctx)
{
    struct context *context = context_lookup(ctx);
    struct thread *thread = thread_self();

    if (!context || context->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    context_empty(context);
    if (!handles_remove(&client->handles, CLIENT_CONTEXT, (uint64_t)ctx))
        return CUDA_ERROR_INVALID_CONTEXT;
    __atomic_store_n(&context->active, false, __ATOMIC_RELEASE);
    pthread_mutex_lock(&client->lock);
    list_remove(&context->link);
    pthread_mutex_unlock(&client->lock);
    if (context_stack_top(&thread->stack) == ctx)
        context_stack_pop(&thread->stack);
    return CUDA_SUCCESS;
}

/* ---- the calling thread's stack ---- */

CUresult client_cuCtxPushCurrent_v2(CUcontext ctx)
{
    if (!ctx)
        return CUDA_ERROR_INVALID_VALUE;
    if (!context_lookup(ctx))
        return CUDA_ERROR_INVALID_CONTEXT;
    return make_current(ctx) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult client_cuCtxPopCurrent_v2(CUcontext *pctx)
{
    CUcontext popped = context_stack_pop(&thread_self()->stack);

    if (!popped)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (pctx)
        *pctx = popped;
    return CUDA_SUCCESS;
}

CUresult client_cuCtxSetCurrent(CUcontext ctx)
{
    if (ctx && !context_lookup(ctx))
        return CUDA_ERROR_INVALID_CONTEXT;
    thread_keep();
    return context_stack_replace(&thread_self()->stack, ctx) == 0 ? CUDA_SUCCESS
                                                                  : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult client_cuCtxGetCurrent(CUcontext *pctx)
{
    if (!pctx)
        return CUDA_ERROR_INVALID_VALUE;
    *pctx = context_stack_top(&thread_self()->stack);
    return CUDA_SUCCESS;
}

/* A primary context that nobody retains has a device all the same. */
CUresult client_cuCtxGetDevice(CUdevice *device)
{
    struct context *context = context_lookup(context_stack_top(&thread_self()->stack));

    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    *device = context->device->ordinal;
    return CUDA_SUCCESS;
}

CUresult client_cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx)
{
    struct context *context = ctx ? context_lookup(ctx) : NULL;

    if (!ctx)
        return client_cuCtxGetDevice(device);
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    *device = context->device->ordinal;
    return CUDA_SUCCESS;
}

/* ---- properties ---- */

CUresult client_cuCtxGetFlags(unsigned *flags)
{
    struct context *context;
    CUresult result = context_current(&context);

    if (!flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *flags = context->flags;
    return result;
}

CUresult client_cuCtxSetFlags(unsigned flags)
{
    struct context *context;
    CUresult result = context_current(&context);

    if (!valid_flags(flags))
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        context->flags = flags;
    return result;
}

CUresult client_cuCtxGetId(CUcontext ctx, unsigned long long *ctxId)
{
    struct context *context;
    CUresult result;

    if (!ctxId)
        return CUDA_ERROR_INVALID_VALUE;
    result = context_resolve(ctx, &context);
    if (result == CUDA_SUCCESS)
        *ctxId = context->id;
    return result;
}

CUresult client_cuCtxGetApiVersion(CUcontext ctx, unsigned *version)
{
    struct context *context;
    CUresult result;

    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    result = context_resolve(ctx, &context);
    if (result == CUDA_SUCCESS)
        *version = context->version;
    return result;
}

CUresult client_cuCtxGetCacheConfig(CUfunc_cache *pconfig)
{
    struct context *context;
    CUresult result = context_current(&context);

    if (!pconfig)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *pconfig = context->cache;
    return result;
}

CUresult client_cuCtxSetCacheConfig(CUfunc_cache config)
{
    struct context *context;
    CUresult result = context_current(&context);

    if ((unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        context->cache = config;
    return result;
}

CUresult client_cuCtxGetSharedMemConfig(CUsharedconfig *pConfig)
{
    struct context *context;
    CUresult result = context_current(&context);

    if (!pConfig)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *pConfig = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
    return result;
}

/* Banks have had one width since long before the oldest device that we serve. */
CUresult client_cuCtxSetSharedMemConfig(CUsharedconfig config)
{
    struct context *context;

    if ((unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
        return CUDA_ERROR_INVALID_VALUE;
    return context_current(&context);
}

CUresult client_cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
    struct context *context;
    CUresult result = context_current(&context);

    if (result != CUDA_SUCCESS)
        return result;
    if (leastPriority)
        *leastPriority = context->device->record->priority_least;
    if (greatestPriority)
        *greatestPriority = context->device->record->priority_greatest;
    return CUDA_SUCCESS;
}

CUresult client_cuCtxResetPersistingL2Cache(void)
{
    struct context *context;

    return context_enter(&context);
}
