/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the work of nodes from the caller's parameters. Kernel parameters are copied by the
 * kernel's layout, so the caller's memory is not needed afterwards.
 */
#include "graph_work.h"

#include <stdlib.h>
#include <string.h>

#include "graph_condition.h"
#include "graph_kernel.h"
#include "graph_mem_ops.h"
#include "graph_memory.h"

/* `extra` is a list of keys and values up to CU_LAUNCH_PARAM_END. The buffer may be shorter than
 * the parameters; missing bytes are zero. */
static CUresult pack_buffer(const struct graph_kernel_info *info, void **extra,
                            unsigned char *ret_buffer)
{
    const void *buffer = NULL;
    size_t given = 0;

    for (unsigned i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
        if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[i + 1];
        else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE)
            given = *(const size_t *)extra[i + 1];
        else
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (info->params_size && !buffer)
        return CUDA_ERROR_INVALID_VALUE;
    if (given > info->params_size)
        given = info->params_size;
    if (given)
        memcpy(ret_buffer, buffer, given);
    memset(ret_buffer + given, 0, info->params_size - given);
    return CUDA_SUCCESS;
}

CUresult graph_pack_params(const struct graph_kernel_info *info, void **params, void **extra,
                           unsigned char *ret_buffer)
{
    if (extra && params)
        return CUDA_ERROR_INVALID_VALUE;
    if (extra)
        return pack_buffer(info, extra, ret_buffer);
    if (info->param_count && !params)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < info->param_count; i++) {
        size_t offset, size;

        if (!params[i])
            return CUDA_ERROR_INVALID_VALUE;
        graph_backend.param_locked(info, i, &offset, &size);
        memcpy(ret_buffer + offset, params[i], size);
    }
    return CUDA_SUCCESS;
}

static void find_offsets(const struct graph_kernel_info *info, struct graph_kernel *kernel)
{
    size_t size;

    for (unsigned i = 0; i < info->param_count; i++)
        graph_backend.param_locked(info, i, &kernel->offsets[i], &size);
}

CUresult graph_work_check(struct graph_work *work, struct graph_work *ret_work)
{
    CUresult result = graph_backend.check_locked(work);

    if (result)
        graph_work_fini(work);
    else
        *ret_work = *work;
    return result;
}

CUresult graph_work_kernel(const CUDA_KERNEL_NODE_PARAMS *params, struct graph_work *ret_work)
{
    const void *given = params->func ? (const void *)params->func : (const void *)params->kern;
    struct graph_work work = {
        .type = CU_GRAPH_NODE_TYPE_KERNEL,
        .kernel = {.grid = {params->gridDimX, params->gridDimY, params->gridDimZ},
                   .block = {params->blockDimX, params->blockDimY, params->blockDimZ},
                   .shared = params->sharedMemBytes,
                   .given_as_buffer = params->extra != NULL},
    };
    struct graph_kernel_info info;
    CUresult result = graph_backend.context_locked(params->ctx, &work.context);

    if (!result)
        result = graph_backend.kernel_locked(given, work.context, &info);
    if (result)
        return result;
    work.kernel.func = info.func;
    work.kernel.kern = info.kern;
    if (!graph_kernel_allocate(&work.kernel, info.param_count, info.params_size))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    else
        result = graph_pack_params(&info, params->kernelParams, params->extra, work.kernel.buffer);
    if (result) {
        graph_work_fini(&work);
        return result;
    }
    find_offsets(&info, &work.kernel);
    graph_kernel_point(&work.kernel);
    return graph_work_check(&work, ret_work);
}

CUresult graph_work_copy_box(const CUDA_MEMCPY3D *copy, CUcontext context,
                             struct graph_work *ret_work)
{
    struct graph_work work = {.type = CU_GRAPH_NODE_TYPE_MEMCPY, .copy = *copy};
    CUresult result = graph_backend.context_locked(context, &work.context);

    if (!copy->WidthInBytes || !copy->Height || !copy->Depth)
        return CUDA_ERROR_INVALID_VALUE;
    return result ? result : graph_work_check(&work, ret_work);
}

CUresult graph_work_captured_fill(const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext context,
                                  struct graph_work *ret_work)
{
    struct graph_work work = {.type = CU_GRAPH_NODE_TYPE_MEMSET, .fill = *fill};
    CUresult result = graph_backend.context_locked(context, &work.context);

    if (result)
        return result;
    if ((fill->elementSize != 1 && fill->elementSize != 2 && fill->elementSize != 4) ||
        fill->dst % fill->elementSize)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_work = work;
    return CUDA_SUCCESS;
}

CUresult graph_work_fill(const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext context,
                         struct graph_work *ret_work)
{
    struct graph_work work;
    CUresult result = graph_work_captured_fill(fill, context, &work);

    if (!result && (!fill->width || !fill->height))
        return CUDA_ERROR_INVALID_VALUE;
    return result ? result : graph_work_check(&work, ret_work);
}

CUresult graph_work_host(const CUDA_HOST_NODE_PARAMS *host, struct graph_work *ret_work)
{
    struct graph_work work = {.type = CU_GRAPH_NODE_TYPE_HOST, .host = *host};

    return host->fn ? graph_work_check(&work, ret_work) : CUDA_ERROR_INVALID_VALUE;
}

CUresult graph_work_child(const struct graph *child, struct graph_work *ret_work)
{
    struct graph_work work = {.type = CU_GRAPH_NODE_TYPE_GRAPH};

    if (!child)
        return CUDA_ERROR_INVALID_VALUE;
    if (graph_has_memory(child) || graph_has_conditional(child))
        return CUDA_ERROR_NOT_SUPPORTED;
    CUresult result = graph_copy(child, true, &work.child);

    return result ? result : graph_work_check(&work, ret_work);
}

CUresult graph_work_event(CUgraphNodeType type, CUevent event, struct graph_work *ret_work)
{
    struct graph_work work = {.type = type, .event = event};

    return event ? graph_work_check(&work, ret_work) : CUDA_ERROR_INVALID_VALUE;
}

CUresult graph_work_mem_ops(const CUDA_BATCH_MEM_OP_NODE_PARAMS *params,
                            struct graph_work *ret_work)
{
    struct graph_work work = {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP};
    CUresult result = graph_mem_ops_check(params->count, params->paramArray);

    if (!result && params->flags)
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result)
        result = graph_backend.context_locked(params->ctx, &work.context);
    if (!result)
        result = graph_mem_ops_copy(params->count, params->paramArray, &work.mem_ops);
    return result ? result : graph_work_check(&work, ret_work);
}

static CUresult fill_of_any(const CUDA_MEMSET_NODE_PARAMS_v2 *params, struct graph_work *ret_work)
{
    const CUDA_MEMSET_NODE_PARAMS fill = {
        .dst = params->dst,
        .pitch = params->pitch,
        .value = params->value,
        .elementSize = params->elementSize,
        .width = params->width,
        .height = params->height,
    };

    return graph_work_fill(&fill, params->ctx, ret_work);
}

/* Only new nodes can move a graph; node_calls.c does that. */
static CUresult child_of_any(const CUDA_CHILD_GRAPH_NODE_PARAMS *params,
                             struct graph_work *ret_work)
{
    if (params->ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE)
        return CUDA_ERROR_INVALID_VALUE;
    return graph_work_child(graph_get(params->graph), ret_work);
}

CUresult graph_work_any(const CUgraphNodeParams *params, struct graph_work *ret_work)
{
    switch (params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return graph_work_kernel(&params->kernel, ret_work);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return graph_work_copy_box(&params->memcpy.copyParams, params->memcpy.copyCtx, ret_work);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return fill_of_any(&params->memset, ret_work);
    case CU_GRAPH_NODE_TYPE_HOST:
        return graph_work_host(&params->host, ret_work);
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return child_of_any(&params->graph, ret_work);
    case CU_GRAPH_NODE_TYPE_EMPTY:
        *ret_work = (struct graph_work){.type = params->type};
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return graph_work_event(params->type, params->eventWait.event, ret_work);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return graph_work_event(params->type, params->eventRecord.event, ret_work);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return graph_work_mem_ops(&params->memOp, ret_work);
    default:
        return (unsigned)params->type <= CU_GRAPH_NODE_TYPE_CONDITIONAL ? CUDA_ERROR_NOT_SUPPORTED
                                                                        : CUDA_ERROR_INVALID_VALUE;
    }
}
