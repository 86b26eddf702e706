/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the graph library (src/graph) asks of the client: contexts, kernels, and whether work could
 * be done. The checks are those of the calls on streams, so what a graph accepts, its launch
 * accepts as well.
 */
#include "graph_backend.h"

#include "client_call.h"
#include "client_capture.h"
#include "client_event.h"
#include "client_library.h"
#include "client_mem_ops.h"
#include "client_symbol.h"
#include "cuda_box.h"
#include "exec_plan.h"
#include "graph_blocks.h"
#include "launch_check.h"
#include "memset.h"

static CUresult find_context(CUcontext given, CUcontext *ret_context)
{
    struct context *context;
    CUresult result = client_error();

    if (result == CUDA_SUCCESS)
        result = context_resolve(given, &context);
    if (result == CUDA_SUCCESS)
        *ret_context = context->handle;
    return result;
}

static CUresult find_function(const void *handle, CUcontext context, struct function **ret_function)
{
    struct context *where = context_lookup(context);

    if (!where)
        return CUDA_ERROR_INVALID_CONTEXT;
    return function_resolve(where, (CUfunction)(uintptr_t)handle, ret_function);
}

static CUresult describe_kernel(const void *handle, CUcontext context,
                                struct graph_kernel_info *ret_info)
{
    struct function *function;
    CUresult result = find_function(handle, context, &function);

    if (result != CUDA_SUCCESS)
        return result;
    *ret_info = (struct graph_kernel_info){
        .params_size = function->params_size,
        .param_count = function->param_count,
        .func = (CUfunction)function->handle,
        .kern = function->kernel ? (CUkernel)function->kernel->handle : NULL,
        .layout = function->layout,
    };
    return CUDA_SUCCESS;
}

static void describe_param(const struct graph_kernel_info *info, unsigned index, size_t *ret_offset,
                           size_t *ret_size)
{
    const uint32_t *layout = info->layout;

    *ret_offset = layout[2 * index];
    *ret_size = layout[2 * index + 1];
}

CUresult graph_node_function(const struct graph_work *work, struct function **ret_function)
{
    return find_function(graph_kernel_function(&work->kernel), work->context, ret_function);
}

CUresult graph_node_box(const struct graph_work *work, struct box *ret_box, enum place *ret_dst,
                        enum place *ret_src)
{
    const struct cuda_box box = cuda_box_of_3d(&work->copy);
    enum side dst, src;
    CUresult result = copy_box_of(&box, ret_box, &dst, &src);

    if (result != CUDA_SUCCESS || box_is_empty(ret_box))
        return result;
    if (symbol_node_is_stale(ret_box->dst, ret_box->src))
        return CUDA_ERROR_NOT_SUPPORTED;
    return copy_classify(ret_box, dst, src, ret_dst, ret_src);
}

static CUresult check_kernel(const struct graph_work *work)
{
    const struct graph_kernel *kernel = &work->kernel;
    const CUlaunchConfig config = {
        .gridDimX = kernel->grid[0],
        .gridDimY = kernel->grid[1],
        .gridDimZ = kernel->grid[2],
        .blockDimX = kernel->block[0],
        .blockDimY = kernel->block[1],
        .blockDimZ = kernel->block[2],
        .sharedMemBytes = kernel->shared,
    };
    struct function *function;
    CUresult result = graph_node_function(work, &function);

    return result != CUDA_SUCCESS
               ? result
               : launch_check(&config, function->attributes,
                              function->module->context->device->record->attributes);
}

static CUresult check_work(const struct graph_work *work)
{
    enum place dst, src;
    struct box box;

    switch (work->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return check_kernel(work);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return graph_node_box(work, &box, &dst, &src);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return memset_check(&work->fill, &dst);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return mem_ops_check(work->mem_ops.count, work->mem_ops.ops);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return event_exists(work->event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    default:
        return CUDA_SUCCESS;
    }
}

static CUresult find_stream(CUstream handle, struct capture_stream **ret_stream)
{
    struct stream *stream;
    CUresult result = stream_enter(handle, &stream);

    if (result == CUDA_SUCCESS)
        *ret_stream = &stream->capture;
    return result;
}

const struct graph_backend graph_backend = {
    .lock = &client_graph_lock,
    .hold = call_mutex_hold,
    .context_locked = find_context,
    .kernel_locked = describe_kernel,
    .param_locked = describe_param,
    .check_locked = check_work,
    .exec_create_locked = exec_plan_create,
    .exec_destroy_locked = exec_plan_destroy,
    .exec_set_locked = exec_plan_set,
    .memory_take_locked = graph_memory_take,
    .memory_give_locked = graph_memory_give,
    .device_exists = graph_device_exists,
    .later_locked = exec_later,
    .stream_locked = find_stream,
    .capture_begins_locked = capture_announce,
};
