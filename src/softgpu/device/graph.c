/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs of kernels. A node can only depend on nodes that were added before it, so a graph runs
 * right when its nodes are put into the stream one after the other, in the order of their adding.
 */
#include <stdlib.h>
#include <string.h>

#include "soft_context.h"
#include "soft_module.h"

/* What one kernel is launched with; the bytes of its parameters follow. */
struct node_launch {
    CUDA_KERNEL_NODE_PARAMS shape;
    size_t params_size;
    unsigned char params[];
};

struct node {
    uint64_t handle;
    struct graph *graph;
    unsigned index;
    struct node_launch *launch;
    struct list in_graph;
};

struct graph {
    uint64_t handle;
    unsigned count;
    struct list nodes;
    struct list execs; /* made of it, and asked about by its nodes */
};

struct exec {
    uint64_t handle;
    struct graph *graph; /* NULL when that is gone */
    unsigned count;
    struct node_launch **launches;
    struct list in_graph;
};

CUresult soft_cuGraphCreate(CUgraph *phGraph, unsigned int flags)
{
    if (!phGraph || flags)
        return CUDA_ERROR_INVALID_VALUE;
    struct graph *graph = calloc(1, sizeof(*graph));

    if (!graph)
        return CUDA_ERROR_OUT_OF_MEMORY;
    list_init(&graph->nodes);
    list_init(&graph->execs);
    graph->handle = soft_add(SOFT_GRAPH, graph);
    if (!graph->handle) {
        free(graph);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *phGraph = (CUgraph)(uintptr_t)graph->handle;
    return CUDA_SUCCESS;
}

static void node_destroy(struct node *node)
{
    handles_remove(&soft_handles, SOFT_GRAPH_NODE, node->handle);
    list_remove(&node->in_graph);
    free(node->launch);
    free(node);
}

CUresult soft_cuGraphDestroy(CUgraph hGraph)
{
    SOFT_LOCKED;
    struct graph *graph = handles_remove(&soft_handles, SOFT_GRAPH, (uintptr_t)hGraph);

    if (!graph)
        return CUDA_ERROR_INVALID_VALUE;
    list_for_each_safe(struct node, node, &graph->nodes, in_graph)
        node_destroy(node);
    list_for_each_safe(struct exec, exec, &graph->execs, in_graph)
    {
        list_remove(&exec->in_graph);
        exec->graph = NULL;
    }
    free(graph);
    return CUDA_SUCCESS;
}

static CUresult find_buffer(void **extra, const void **ret_buffer, size_t *ret_size)
{
    for (unsigned i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
        if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            *ret_buffer = extra[i + 1];
        else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE)
            *ret_size = *(const size_t *)extra[i + 1];
        else
            return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

/* Parameters as one buffer, whichever way they come. */
static CUresult copy_params(const CUDA_KERNEL_NODE_PARAMS *shape, const struct sg_kernel_info *info,
                            unsigned char *params)
{
    const void *buffer = NULL;
    size_t given = 0;

    if (shape->extra) {
        CUresult result = find_buffer(shape->extra, &buffer, &given);
        if (result || given < info->params_size || (given && !buffer))
            return CUDA_ERROR_INVALID_VALUE;
        memcpy(params, buffer, info->params_size);
        return CUDA_SUCCESS;
    }
    for (unsigned i = 0; i < info->param_count; i++) {
        if (!shape->kernelParams || !shape->kernelParams[i])
            return CUDA_ERROR_INVALID_VALUE;
        memcpy(params + info->params[i].offset, shape->kernelParams[i], info->params[i].size);
    }
    return CUDA_SUCCESS;
}

static CUresult node_launch_create_locked(const CUDA_KERNEL_NODE_PARAMS *shape,
                                          struct node_launch **ret_launch)
{
    const void *function = shape->func ? (const void *)shape->func : (const void *)shape->kern;
    struct kernel *kernel;
    CUresult result = kernel_find_locked(function, &kernel);

    if (result)
        return result;
    struct node_launch *launch = calloc(1, sizeof(*launch) + kernel->info->params_size);
    if (!launch)
        return CUDA_ERROR_OUT_OF_MEMORY;
    launch->shape = *shape;
    launch->shape.func = (CUfunction)function;
    launch->params_size = kernel->info->params_size;
    result = copy_params(shape, kernel->info, launch->params);
    if (result)
        free(launch);
    else
        *ret_launch = launch;
    return result;
}

static struct node_launch *node_launch_copy(const struct node_launch *launch)
{
    size_t size = sizeof(*launch) + launch->params_size;
    struct node_launch *copy = malloc(size);

    return copy ? memcpy(copy, launch, size) : NULL;
}

static bool are_in_graph_locked(const struct graph *graph, const CUgraphNode *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct node *node = nodes ? soft_get(SOFT_GRAPH_NODE, nodes[i]) : NULL;
        if (!node || node->graph != graph)
            return false;
    }
    return true;
}

CUresult soft_cuGraphAddKernelNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
                                      const CUgraphNode *dependencies, size_t numDependencies,
                                      const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    SOFT_LOCKED;
    struct graph *graph = soft_get(SOFT_GRAPH, hGraph);
    struct node_launch *launch;

    if (!graph || !phGraphNode || !nodeParams ||
        !are_in_graph_locked(graph, dependencies, numDependencies))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = node_launch_create_locked(nodeParams, &launch);
    if (result)
        return result;
    struct node *node = calloc(1, sizeof(*node));
    if (!node || !(node->handle = soft_add(SOFT_GRAPH_NODE, node))) {
        free(node);
        free(launch);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    node->graph = graph;
    node->index = graph->count++;
    node->launch = launch;
    list_append(&graph->nodes, &node->in_graph);
    *phGraphNode = (CUgraphNode)(uintptr_t)node->handle;
    return CUDA_SUCCESS;
}

static void exec_free(struct exec *exec)
{
    if (!exec)
        return;
    for (unsigned i = 0; i < exec->count; i++)
        free(exec->launches[i]);
    free(exec->launches);
    free(exec);
}

static struct exec *exec_create(const struct graph *graph)
{
    struct exec *exec = calloc(1, sizeof(*exec));

    if (!exec)
        return NULL;
    list_init(&exec->in_graph);
    exec->launches = calloc(graph->count + 1, sizeof(*exec->launches));
    if (!exec->launches) {
        free(exec);
        return NULL;
    }
    list_for_each(struct node, node, &graph->nodes, in_graph)
    {
        struct node_launch *copy = node_launch_copy(node->launch);
        if (!copy) {
            exec_free(exec);
            return NULL;
        }
        exec->launches[exec->count++] = copy;
    }
    return exec;
}

CUresult soft_cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph,
                                          unsigned long long flags)
{
    SOFT_LOCKED;
    struct graph *graph = soft_get(SOFT_GRAPH, hGraph);

    if (!graph || !phGraphExec || flags)
        return CUDA_ERROR_INVALID_VALUE;
    struct exec *exec = exec_create(graph);
    if (!exec || !(exec->handle = soft_add(SOFT_GRAPH_EXEC, exec))) {
        exec_free(exec);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    exec->graph = graph;
    list_append(&graph->execs, &exec->in_graph);
    *phGraphExec = (CUgraphExec)(uintptr_t)exec->handle;
    return CUDA_SUCCESS;
}

CUresult soft_cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    SOFT_LOCKED;
    struct exec *exec = soft_get(SOFT_GRAPH_EXEC, hGraphExec);
    const struct node *node = soft_get(SOFT_GRAPH_NODE, hNode);
    struct node_launch *launch;

    if (!exec || !node || !nodeParams || exec->graph != node->graph || node->index >= exec->count)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = node_launch_create_locked(nodeParams, &launch);
    if (result)
        return result;
    free(exec->launches[node->index]);
    exec->launches[node->index] = launch;
    return CUDA_SUCCESS;
}

static CUresult launch_node(const struct node_launch *launch, CUstream stream)
{
    const CUDA_KERNEL_NODE_PARAMS *shape = &launch->shape;
    size_t size = launch->params_size;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, (void *)launch->params,
                     CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};

    return soft_cuLaunchKernel(shape->func, shape->gridDimX, shape->gridDimY, shape->gridDimZ,
                               shape->blockDimX, shape->blockDimY, shape->blockDimZ,
                               shape->sharedMemBytes, stream, NULL, size ? extra : NULL);
}

/* A copy, since a launch may wait and must not do so under the lock. */
static struct exec *exec_snapshot(CUgraphExec handle)
{
    SOFT_LOCKED;
    const struct exec *exec = soft_get(SOFT_GRAPH_EXEC, handle);
    struct exec *copy = exec ? calloc(1, sizeof(*copy)) : NULL;

    if (!copy || !(copy->launches = calloc(exec->count + 1, sizeof(*copy->launches)))) {
        free(copy);
        return NULL;
    }
    for (unsigned i = 0; i < exec->count; i++) {
        copy->launches[i] = node_launch_copy(exec->launches[i]);
        if (!copy->launches[i])
            break;
        copy->count++;
    }
    return copy;
}

CUresult soft_cuGraphLaunch(CUgraphExec hGraph, CUstream hStream)
{
    struct exec *exec = exec_snapshot(hGraph);
    CUresult result = exec ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;

    for (unsigned i = 0; result == CUDA_SUCCESS && i < exec->count; i++)
        result = launch_node(exec->launches[i], hStream);
    exec_free(exec);
    return result;
}

CUresult soft_cuGraphExecDestroy(CUgraphExec hGraphExec)
{
    SOFT_LOCKED;
    struct exec *exec = handles_remove(&soft_handles, SOFT_GRAPH_EXEC, (uintptr_t)hGraphExec);

    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    list_remove(&exec->in_graph);
    exec_free(exec);
    return CUDA_SUCCESS;
}
