/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The software GPU as an owner of graphs: what the model asks of it. Launching is in
 * graph_launch.c.
 */
#include "copy_prepare.h"
#include "graph_pool.h"
#include "launch_calls.h"
#include "launch_prepare.h"
#include "soft_context.h"
#include "soft_graph_launch.h"
#include "soft_module.h"
#include "stream_prepare.h"

static CUresult find_context_locked(CUcontext given, CUcontext *ret_context)
{
    struct context *context;
    CUresult result = context_find_locked(given, &context);

    if (!result)
        *ret_context = (CUcontext)(uintptr_t)context->handle;
    return result;
}

static CUresult find_kernel_locked(const void *function, CUcontext context,
                                   struct graph_kernel_info *ret_info)
{
    struct context *where;
    struct kernel *kernel;
    struct module *module;
    CUfunction func;
    CUresult result = context_find_locked(context, &where);

    if (!result)
        result = kernel_resolve_locked(function, where, &kernel, &module);
    if (!result)
        result = module_function_locked(module, kernel->index, &func);
    if (result)
        return result;
    *ret_info = launch_params_of(kernel->info);
    ret_info->func = func;
    ret_info->kern = (CUkernel)kernel->handle;
    return CUDA_SUCCESS;
}

static void find_param_locked(const struct graph_kernel_info *info, unsigned index,
                              size_t *ret_offset, size_t *ret_size)
{
    const struct sg_param_info *params = info->layout;

    *ret_offset = params[index].offset;
    *ret_size = params[index].size;
}

/* Work that can be prepared can be launched. */
static CUresult check_locked(const struct graph_work *work)
{
    struct context *context;
    struct operation *operation;
    CUresult result = context_find_locked(work->context, &context);

    if (work->context && result)
        return result;
    result = graph_prepare_locked(work, work->context ? context->legacy : NULL, false, &operation);
    if (!result)
        operation_unref_locked(operation);
    return result;
}

static CUresult find_stream_locked(CUstream handle, struct capture_stream **ret_stream)
{
    struct stream *stream;
    CUresult result = stream_find_locked(handle, &stream);

    if (!result)
        *ret_stream = &stream->capture;
    return result;
}

const struct graph_backend graph_backend = {
    .lock = &soft_lock,
    .hold = mutex_hold,
    .context_locked = find_context_locked,
    .kernel_locked = find_kernel_locked,
    .param_locked = find_param_locked,
    .check_locked = check_locked,
    .exec_create_locked = graph_exec_create_locked,
    .exec_destroy_locked = graph_exec_destroy_locked,
    .exec_set_locked = graph_exec_set_locked,
    .memory_take_locked = graph_memory_take_locked,
    .memory_give_locked = graph_memory_give_locked,
    .device_exists = graph_device_exists,
    .later_locked = graph_later_locked,
    .stream_locked = find_stream_locked,
};
