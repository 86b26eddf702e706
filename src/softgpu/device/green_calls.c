/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls on parts of a device and on green contexts. The divisions are an H100's: by eight, or
 * by two when the caller gives up co-scheduling, and with it clusters of more than two blocks.
 */
#include <stdlib.h>

#include "device_sync.h"
#include "soft_event.h"
#include "soft_green.h"
#include "stream_prepare.h"

#define COSCHEDULED 8u
#define SMALLEST 2u

static void set_of_device(const struct device *device, struct sm_set *ret_set)
{
    unsigned count = device->sm_count;

    *ret_set = (struct sm_set){
        .device = device->number, .unit = SMALLEST, .least = COSCHEDULED, .scheduled = COSCHEDULED};
    sm_set_fill(ret_set, count, count < COSCHEDULED ? count : count / COSCHEDULED * COSCHEDULED);
}

CUresult soft_cuDeviceGetDevResource(CUdevice device, CUdevResource *resource,
                                     CUdevResourceType type)
{
    struct device *found = device_get(device);
    struct sm_set set;

    if (!found)
        return CUDA_ERROR_INVALID_DEVICE;
    if (type != CU_DEV_RESOURCE_TYPE_SM)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    set_of_device(found, &set);
    sm_set_to_resource(&set, resource);
    return CUDA_SUCCESS;
}

CUresult soft_cuCtxGetDevResource(CUcontext hCtx, CUdevResource *resource, CUdevResourceType type)
{
    struct context *context;
    struct sm_set set;

    if (type != CU_DEV_RESOURCE_TYPE_SM)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    SOFT_LOCKED;
    CUresult result = hCtx ? context_find_locked(hCtx, &context) : CUDA_ERROR_INVALID_CONTEXT;
    struct green *green = green_of_context_locked(hCtx);

    if (result)
        return result;
    set_of_device(context->device, &set);
    sm_set_to_resource(green ? &green->set : &set, resource);
    return CUDA_SUCCESS;
}

CUresult soft_cuGreenCtxGetDevResource(CUgreenCtx hCtx, CUdevResource *resource,
                                       CUdevResourceType type)
{
    struct green *green = soft_get(SOFT_GREEN, hCtx);

    if (!green)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (type != CU_DEV_RESOURCE_TYPE_SM)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    sm_set_to_resource(&green->set, resource);
    return CUDA_SUCCESS;
}

CUresult soft_cuDevSmResourceSplitByCount(CUdevResource *result, unsigned int *nbGroups,
                                          const CUdevResource *input, CUdevResource *remaining,
                                          unsigned int useFlags, unsigned int minCount)
{
    return sm_set_split(result, nbGroups, input, remaining, useFlags, minCount);
}

/* Descriptors have no end in the API; they live as long as the process. */
CUresult soft_cuDevResourceGenerateDesc(CUdevResourceDesc *phDesc, CUdevResource *resources,
                                        unsigned int nbResources)
{
    struct sm_set set, *kept;

    if (!resources || nbResources == 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sm_set_join(resources, nbResources, &set);
    if (result)
        return result;
    kept = malloc(sizeof(*kept));
    uint64_t handle = kept ? soft_add(SOFT_RESOURCE, kept) : 0;
    if (!handle) {
        free(kept);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *kept = set;
    *phDesc = (CUdevResourceDesc)handle;
    return CUDA_SUCCESS;
}

/* ---- the life of green contexts ---- */

static void forget_locked(struct green *green)
{
    if (green->handle)
        handles_remove(&soft_handles, SOFT_GREEN, green->handle);
    if (green->as_context)
        handles_remove(&soft_handles, SOFT_GREEN_CONTEXT, green->as_context);
    operation_unref_locked(green->barrier);
    free(green);
}

static CUresult create_locked(struct device *device, const struct sm_set *set,
                              struct green **ret_green)
{
    struct green *green = calloc(1, sizeof(*green));
    struct stream *legacy = NULL;

    if (!green)
        return CUDA_ERROR_OUT_OF_MEMORY;
    green->device = device;
    green->set = *set;
    green->set.is_part = false;
    green->id = context_new_id_locked();
    green->handle = soft_add(SOFT_GREEN, green);
    green->as_context = soft_add(SOFT_GREEN_CONTEXT, green);
    if (green->handle && green->as_context)
        legacy = stream_create_locked(device->primary, CU_STREAM_DEFAULT, SOFT_LEAST_PRIORITY);
    if (!legacy) {
        forget_locked(green);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    legacy->capture.is_legacy = true;
    legacy->capture.context = (CUcontext)green->as_context;
    green->legacy = legacy->handle;
    green_add_stream_locked(green, legacy);
    *ret_green = green;
    return CUDA_SUCCESS;
}

CUresult soft_cuGreenCtxCreate(CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev,
                               unsigned int flags)
{
    struct device *device = device_get(dev);
    const struct sm_set *set = soft_get(SOFT_RESOURCE, desc);
    struct green *green;
    CUcontext primary;

    if (flags != CU_GREEN_CTX_DEFAULT_STREAM)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!set || set->device != device->number)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = soft_cuDevicePrimaryCtxRetain(&primary, dev);
    if (result)
        return result;
    pthread_mutex_lock(&soft_lock);
    device_sync_emulate_locked(device->primary);
    result = create_locked(device, set, &green);
    pthread_mutex_unlock(&soft_lock);
    if (result)
        soft_cuDevicePrimaryCtxRelease_v2(dev);
    else
        *phCtx = (CUgreenCtx)green->handle;
    return result;
}

/* Streams of it that are still there can only be told that it is gone. What is in them is done. */
static void detach_streams_locked(struct green *green)
{
    list_for_each_safe (struct stream, stream, &green->device->primary->streams, in_context) {
        if (stream->green != green)
            continue;
        stream->green = NULL;
        stream->detached = true;
        capture_stream_gone_locked(&stream->capture);
    }
}

CUresult soft_cuGreenCtxDestroy(CUgreenCtx hCtx)
{
    CUdevice device;
    struct green *green;

    pthread_mutex_lock(&soft_lock);
    green = handles_remove(&soft_handles, SOFT_GREEN, (uintptr_t)hCtx);
    if (green) {
        struct stream *legacy = green_default_locked(green);

        device = green->device->ordinal;
        green->handle = 0;
        detach_streams_locked(green);
        if (legacy)
            stream_destroy_locked(legacy);
        forget_locked(green);
    }
    pthread_mutex_unlock(&soft_lock);
    return green ? soft_cuDevicePrimaryCtxRelease_v2(device) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult soft_cuCtxFromGreenCtx(CUcontext *pContext, CUgreenCtx hCtx)
{
    struct green *green = soft_get(SOFT_GREEN, hCtx);

    if (!green)
        return CUDA_ERROR_INVALID_CONTEXT;
    *pContext = (CUcontext)green->as_context;
    return CUDA_SUCCESS;
}

CUresult soft_cuGreenCtxGetId(CUgreenCtx greenCtx, unsigned long long *greenCtxId)
{
    struct green *green = soft_get(SOFT_GREEN, greenCtx);

    if (!green)
        return CUDA_ERROR_INVALID_CONTEXT;
    *greenCtxId = green->id;
    return CUDA_SUCCESS;
}

/* ---- streams and events ---- */

static CUresult primary_of_locked(const struct green *green, struct context **ret_context)
{
    struct context *context = green->device->primary;

    if (context->error)
        return context->error;
    if (!context->active)
        return CUDA_ERROR_INVALID_CONTEXT;
    *ret_context = context;
    return CUDA_SUCCESS;
}

CUresult soft_cuGreenCtxStreamCreate(CUstream *phStream, CUgreenCtx greenCtx, unsigned int flags,
                                     int priority)
{
    struct green *green;
    struct context *context;
    struct stream *stream;
    SOFT_LOCKED;

    if (flags != CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    green = soft_get(SOFT_GREEN, greenCtx);
    if (!green)
        return CUDA_ERROR_INVALID_CONTEXT;
    CUresult result = primary_of_locked(green, &context);

    if (result)
        return result;
    device_block_take_locked(context);
    stream = stream_create_locked(context, flags, stream_clamp_priority(priority));
    if (!stream || !green_add_stream_locked(green, stream))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *phStream = (CUstream)stream->handle;
    return CUDA_SUCCESS;
}

/* Work that is captured is no work of the context: its capture is over. */
static CUresult refuse_captures_locked(struct context *context, const struct green *green)
{
    CUresult result = CUDA_SUCCESS;

    list_for_each (struct stream, stream, &context->streams, in_context) {
        if ((!green || stream->green == green) && capture_is_on(&stream->capture))
            result = capture_refuse_locked(&stream->capture);
    }
    return result;
}

/* Of all streams of a context, its green contexts' included, or of one green context. */
static CUresult record_locked(struct context *context, const struct green *green, CUevent handle)
{
    const struct event *event = soft_get(SOFT_EVENT, handle);
    struct operation *record;

    if (!event || event->context != context)
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = refuse_captures_locked(context, green);
    if (!result)
        result = event_prepare_locked(handle, &record);
    if (result)
        return result;
    list_for_each (struct stream, stream, &context->streams, in_context) {
        if (!green || stream->green == green)
            operation_depend_locked(record, stream->last);
    }
    event_recorded_locked(handle, record);
    schedule_begin_locked(context, record);
    operation_unref_locked(record);
    return CUDA_SUCCESS;
}

CUresult soft_cuGreenCtxRecordEvent(CUgreenCtx hCtx, CUevent hEvent)
{
    struct green *green;
    struct context *context;
    SOFT_LOCKED;

    green = soft_get(SOFT_GREEN, hCtx);
    if (!green)
        return CUDA_ERROR_INVALID_CONTEXT;
    CUresult result = primary_of_locked(green, &context);

    return result ? result : record_locked(context, green, hEvent);
}

CUresult soft_cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent)
{
    struct context *context;
    SOFT_LOCKED;
    CUresult result = hCtx ? context_find_locked(hCtx, &context) : CUDA_ERROR_INVALID_CONTEXT;

    if (!result)
        result = context->error;
    return result ? result : record_locked(context, green_of_context_locked(hCtx), hEvent);
}

static CUresult hold_stream_locked(struct stream *stream, CUevent event)
{
    struct operation *wait;
    CUresult result = event_prepare_locked(event, &wait);

    if (result)
        return result;
    event_awaited_locked(event, wait);
    schedule_enqueue_locked(stream, wait);
    operation_unref_locked(wait);
    return CUDA_SUCCESS;
}

/* Streams that are made later wait behind the barrier. */
static CUresult set_barrier_locked(struct green *green, CUevent event)
{
    struct operation *old = green->barrier, *barrier;
    CUresult result = event_prepare_locked(event, &barrier);

    if (result)
        return result;
    operation_depend_locked(barrier, old);
    event_awaited_locked(event, barrier);
    schedule_begin_locked(green->device->primary, barrier);
    green->barrier = barrier;
    operation_unref_locked(old);
    return CUDA_SUCCESS;
}

static CUresult wait_locked(struct context *context, struct green *green, CUevent handle)
{
    struct event *event = soft_get(SOFT_EVENT, handle);
    CUresult result;

    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    result = capture_has_event(&event->capture) ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
                                                : refuse_captures_locked(context, green);
    if (result || !event->record || event->record->state == OPERATION_FINISHED)
        return result;
    list_for_each (struct stream, stream, &context->streams, in_context) {
        if (!result && !stream->destroyed && (!green || stream->green == green))
            result = hold_stream_locked(stream, handle);
    }
    return green && !result ? set_barrier_locked(green, handle) : result;
}

CUresult soft_cuGreenCtxWaitEvent(CUgreenCtx hCtx, CUevent hEvent)
{
    struct green *green;
    struct context *context;
    SOFT_LOCKED;

    green = soft_get(SOFT_GREEN, hCtx);
    if (!green)
        return CUDA_ERROR_INVALID_CONTEXT;
    CUresult result = primary_of_locked(green, &context);

    return result ? result : wait_locked(context, green, hEvent);
}

CUresult soft_cuCtxWaitEvent(CUcontext hCtx, CUevent hEvent)
{
    struct context *context;
    SOFT_LOCKED;
    CUresult result = hCtx ? context_find_locked(hCtx, &context) : CUDA_ERROR_INVALID_CONTEXT;

    if (!result)
        result = context->error;
    return result ? result : wait_locked(context, green_of_context_locked(hCtx), hEvent);
}
