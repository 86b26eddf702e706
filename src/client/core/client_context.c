/* SPDX-License-Identifier: Apache-2.0 */
/* Making and finding contexts; see client_context.h. */
#include "client_context.h"

#include <stdlib.h>

#include "client_thread.h"
#include "recovery_hook.h"

#define API_VERSION 3020

struct context *context_create(struct device *device)
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

static __attribute__((noinline)) CUresult primary_of_green(const struct context *context,
                                                           struct context **ret_context)
{
    if (!context->green || !context_active(context->device->primary))
        return CUDA_ERROR_INVALID_CONTEXT;
    *ret_context = context->device->primary;
    return CUDA_SUCCESS;
}

static CUresult usable(CUcontext handle, struct context **ret_context)
{
    struct context *context = context_lookup(handle);

    if (!context)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (!context_active(context))
        return primary_of_green(context, ret_context);
    *ret_context = context;
    return CUDA_SUCCESS;
}

CUresult context_current(struct context **ret_context)
{
    CUcontext top = context_stack_top(&thread_self()->stack);

    return top ? usable(top, ret_context) : CUDA_ERROR_INVALID_CONTEXT;
}

bool context_is_none(void)
{
    return !context_stack_top(&thread_self()->stack);
}

CUresult context_enter(struct context **ret_context)
{
    CUresult result = recovery_client_error();

    return result != CUDA_SUCCESS ? result : context_current(ret_context);
}

CUresult context_resolve(CUcontext handle, struct context **ret_context)
{
    if (!handle)
        return context_current(ret_context);
    return usable(handle, ret_context) == CUDA_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

struct context *context_of_streams(struct context *context)
{
    struct context *top;

    if (!context_has_greens(context))
        return context;
    top = context_lookup(context_stack_top(&thread_self()->stack));
    return top && top->green && top->device == context->device ? top : context;
}

CUresult context_resolve_streams(CUcontext handle, struct context **ret_context)
{
    struct context *context;
    CUresult result = context_resolve(handle, &context);

    if (result != CUDA_SUCCESS)
        return result;
    if (!handle)
        context = context_of_streams(context);
    else if (context_lookup(handle) && context_lookup(handle)->green)
        context = context_lookup(handle);
    *ret_context = context;
    return CUDA_SUCCESS;
}
