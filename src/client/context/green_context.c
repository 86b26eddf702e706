/* SPDX-License-Identifier: Apache-2.0 */
/* The life of green contexts; see green_context.h. */
#include "green_context.h"

#include <stdlib.h>

#include "affinity.h"
#include "client_prototypes.h"
#include "client_stream.h"
#include "cudart.h"
#include "stream_join.h"
#include "stream_wait.h"
#include "wire_calls.h"

struct green *green_lookup(CUgreenCtx handle)
{
    return handles_get(&client->handles, CLIENT_GREEN, (uint64_t)handle);
}

CUresult green_device_set(const struct device *device, struct sm_set *ret_set)
{
    struct wire_fnShareAsk in = {.device = device->index};
    struct wire_fnShareAsk_reply out;
    CUresult result = client_error();

    if (result == CUDA_SUCCESS)
        result = wire_fnShareAsk(&client->channel, &in, &out);
    if (result != CUDA_SUCCESS)
        return result;
    if (!out.unit || !out.scheduled || out.unit > SM_SET_MAX || out.least > SM_SET_MAX ||
        out.scheduled > SM_SET_MAX || out.sm_count > SM_SET_MAX)
        return CUDA_ERROR_NOT_SUPPORTED;
    *ret_set = (struct sm_set){.device = (uint32_t)device->ordinal,
                               .unit = (uint16_t)out.unit,
                               .least = (uint16_t)out.least,
                               .scheduled = (uint16_t)out.scheduled};
    sm_set_fill(ret_set, out.sm_count, out.coscheduled);
    return CUDA_SUCCESS;
}

/* The server knows groups of `unit` multiprocessors. */
static CUresult create_share(const struct device *device, const struct sm_set *set,
                             uint32_t *ret_share)
{
    struct wire_fnShareCreateOf in = {.device = device->index};
    struct wire_fnShareCreateOf_reply out;
    CUresult result;

    for (unsigned sm = 0; sm < SM_SET_MAX; sm++) {
        unsigned group = sm / set->unit;

        if (set->sms[sm / 64] >> sm % 64 & 1)
            in.groups[group / 64] |= 1ull << group % 64;
    }
    result = wire_fnShareCreateOf(&client->channel, &in, &out);
    if (result == CUDA_SUCCESS)
        *ret_share = out.share;
    return result;
}

/* Without memory, the caller frees the parts that exist so far. */
static bool fill_green(struct green *green, struct device *device, const struct sm_set *set)
{
    green->set = *set;
    green->set.is_part = false;
    green->context = context_create(device);
    green->handle =
        green->context ? (CUgreenCtx)handles_add(&client->handles, CLIENT_GREEN, green) : NULL;
    return green->handle != NULL;
}

static void free_green(struct green *green)
{
    if (green->handle)
        handles_remove(&client->handles, CLIENT_GREEN, (uint64_t)green->handle);
    if (green->context)
        handles_remove(&client->handles, CLIENT_CONTEXT, (uint64_t)green->context->handle);
    free(green->context); /* no thread has seen it */
    free(green);
}

static void announce_share(struct green *green, uint32_t share)
{
    struct context *context = green->context, *primary = context->device->primary;

    context->share = share;
    context->sm_count = sm_set_count(&green->set);
    context->flags = primary->flags;
    context->green = green->handle;
    pthread_mutex_lock(&client->lock);
    list_append(&client->contexts, &context->link);
    pthread_mutex_unlock(&client->lock);
    atomic_fetch_add_explicit(&primary->greens, 1, memory_order_release);
}

static CUresult make_green(struct device *device, const struct sm_set *set,
                           struct green **ret_green)
{
    struct green *green = calloc(1, sizeof(*green));
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    uint32_t share = 0;

    if (!green)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (fill_green(green, device, set))
        result = create_share(device, set, &share);
    if (result != CUDA_SUCCESS) {
        free_green(green);
        return result;
    }
    announce_share(green, share);
    *ret_green = green;
    return CUDA_SUCCESS;
}

CUresult green_create(struct device *device, const struct sm_set *set, struct green **ret_green)
{
    CUcontext primary;
    CUresult result = client_cuDevicePrimaryCtxRetain(&primary, device->ordinal);

    if (result != CUDA_SUCCESS)
        return result;
    result = client_error();
    if (result == CUDA_SUCCESS)
        result = make_green(device, set, ret_green);
    if (result != CUDA_SUCCESS)
        client_cuDevicePrimaryCtxRelease_v2(device->ordinal);
    return result;
}

/* The context's structure stays: another thread may be in a call that uses it. */
CUresult green_destroy(CUgreenCtx handle)
{
    struct green *green = handles_remove(&client->handles, CLIENT_GREEN, (uint64_t)handle);

    if (!green)
        return CUDA_ERROR_INVALID_CONTEXT;
    struct context *context = green->context;
    struct device *device = context->device;

    free(green);
    cudart_context_gone(context->handle);
    if (client_error() == CUDA_SUCCESS)
        stream_synchronize_context(context);
    handles_remove(&client->handles, CLIENT_CONTEXT, (uint64_t)context->handle);
    stream_join_end(context);
    stream_detach_all(context);
    affinity_release(context);
    pthread_mutex_lock(&client->lock);
    list_remove(&context->link);
    pthread_mutex_unlock(&client->lock);
    atomic_fetch_sub_explicit(&device->primary->greens, 1, memory_order_release);
    return client_cuDevicePrimaryCtxRelease_v2(device->ordinal);
}
