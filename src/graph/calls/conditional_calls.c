/* SPDX-License-Identifier: Apache-2.0 */
/* The call that creates the handle of a conditional node. */
#include "graph_condition.h"
#include "graph_objects.h"

CUresult graph_cuGraphConditionalHandleCreate(CUgraphConditionalHandle *pHandle_out, CUgraph hGraph,
                                              CUcontext ctx, unsigned int defaultLaunchValue,
                                              unsigned int flags)
{
    GRAPH_LOCKED;
    struct graph *graph = graph_get(hGraph);
    struct graph_condition *condition;
    CUcontext context;

    if (!graph || flags & ~CU_GRAPH_COND_ASSIGN_DEFAULT)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = graph_backend.context_locked(ctx, &context);
    if (!result)
        result = graph_condition_create(graph, context, defaultLaunchValue, flags, &condition);
    if (!result)
        *pHandle_out = condition->handle;
    return result;
}
