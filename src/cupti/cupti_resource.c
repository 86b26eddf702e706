/* SPDX-License-Identifier: Apache-2.0 */
/* See cupti_resource.h. The first call after which a context is current tells that it was made
 * (cupti_callback.c). */
#include "cupti_resource.h"

#include <stdbool.h>
#include <string.h>

#include "cupti_abi.h"
#include "cupti_call.h"
#include "cupti_callback.h"
#include "cupti_driver.h"
#include "cupti_graph_calls.h"
#include "cupti_object.h"

/* ---- streams, contexts and modules ---- */

/* The first argument of cuStreamCreate() and cuStreamCreateWithPriority(). */
static void stream_was_made(const struct profiler_call *call)
{
    CUstream *const *stream = call->arguments;

    cupti_callback_resource(CUPTI_STREAM_CREATED,
                            &(struct cupti_resource_data){.stream = **stream});
}

static void stream_ends(CUstream stream)
{
    cupti_callback_resource(CUPTI_STREAM_DESTROY_STARTING,
                            &(struct cupti_resource_data){.stream = stream});
}

static void module_changes(uint32_t cbid, const struct profiler_resource *resource)
{
    struct cupti_module_data data = {
        .module = (uint32_t)(uintptr_t)resource->module,
        .size = resource->code_size,
        .code = resource->code,
    };

    cupti_callback_resource(cbid, &(struct cupti_resource_data){
                                      .context = resource->context,
                                      .descriptor = &data,
                                  });
}

/* A primary context has the same id when it is made again. */
static void context_ends(CUcontext context)
{
    cupti_callback_resource(CUPTI_CONTEXT_DESTROY_STARTING,
                            &(struct cupti_resource_data){.context = context});
    cupti_callback_forget_context(cupti_context_number(context));
    cupti_object_forget_context(cupti_context_number(context));
}

void cupti_resource_change(const struct profiler_resource *resource)
{
    if (resource->kind == PROFILER_MODULE_LOADED)
        module_changes(CUPTI_MODULE_LOADED, resource);
    else if (resource->kind == PROFILER_MODULE_ENDS)
        module_changes(CUPTI_MODULE_UNLOAD_STARTING, resource);
    else
        context_ends(resource->context);
}

/* ---- calls ---- */

void cupti_resource_leave(const struct profiler_call *call)
{
    if (call->runtime_cbid || call->result != CUDA_SUCCESS || !call->arguments ||
        !cupti_callback_wants_resources())
        return;
    if (!strcmp(call->name, "cuInit"))
        cupti_callback_resource(CUPTI_CU_INIT_FINISHED,
                                &(struct cupti_resource_data){.stream = NULL});
    else if (cupti_call_begins(call, "cuStreamCreate"))
        stream_was_made(call);
    else
        cupti_graph_call_leave(call);
}

/* The first argument of each is the handle. */
void cupti_resource_enter(const struct profiler_call *call)
{
    if (call->runtime_cbid || !call->arguments || !cupti_callback_wants_resources())
        return;
    if (cupti_call_begins(call, "cuGraph"))
        cupti_graph_call_enter(call);
    else if (cupti_call_begins(call, "cuStreamDestroy"))
        stream_ends(*(const CUstream *)call->arguments);
}
