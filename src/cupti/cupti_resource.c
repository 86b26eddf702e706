/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See cupti_resource.h. The first call after which a context is current tells that it was made
 * (cupti_callback.c). A launchable graph has copies of its nodes, which have no handles. Their ids
 * (cupti_graph.h) stand for these, and its own handle for the graph that the copies are in. Calls
 * that make a copy of a graph (cuGraphClone), and those that end a whole graph, tell of no node.
 */
#include "cupti_resource.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cupti_abi.h"
#include "cupti_call.h"
#include "cupti_callback.h"
#include "cupti_driver.h"
#include "cupti_graph.h"
#include "cupti_object.h"

static bool begins_with(const char *name, const char *prefix)
{
    return !strncmp(name, prefix, strlen(prefix));
}

static bool wants(uint32_t cbid)
{
    return cupti_callback_wants(CUPTI_DOMAIN_RESOURCE, cbid);
}

static void tell(uint32_t cbid, struct cupti_graph_data *graph)
{
    cupti_callback_resource(cbid, &(struct cupti_resource_data){.descriptor = graph});
}

/* ---- nodes ---- */

static void tell_of_node(CUgraph graph, CUgraphNode node)
{
    struct cupti_graph_data data = {.graph = graph, .node = node};

    cupti_driver()->node_type(node, &data.type);
    tell(CUPTI_GRAPHNODE_CREATED, &data);
}

/* The first arguments of cuGraphAddKernelNode() and its like. */
static void node_was_added(const struct profiler_call *call)
{
    const struct {
        CUgraphNode *node;
        CUgraph graph;
    } *arguments = call->arguments;

    tell_of_node(arguments->graph, *arguments->node);
}

/* What a stream captures last is what the next command depends on. */
static void work_was_captured(const struct profiler_call *call)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUgraphNode *nodes;
    CUstream stream = cupti_call_stream(call);
    CUgraph graph;
    size_t count;

    if (stream &&
        cupti_driver()->capture_info(stream, &status, NULL, &graph, &nodes, &count) ==
            CUDA_SUCCESS &&
        status == CU_STREAM_CAPTURE_STATUS_ACTIVE && count == 1)
        tell_of_node(graph, nodes[0]);
}

static bool may_be_captured(const char *name)
{
    return begins_with(name, "cuLaunch") || begins_with(name, "cuMemcpy") ||
           begins_with(name, "cuMemset") || begins_with(name, "cuMemAllocAsync") ||
           begins_with(name, "cuMemFreeAsync");
}

/* ---- graphs ---- */

static void graph_was_made(CUgraph graph)
{
    struct cupti_graph_data data = {.graph = graph};

    tell(CUPTI_GRAPH_CREATED, &data);
}

static void capture_began(const struct profiler_call *call)
{
    CUstreamCaptureStatus status;
    CUgraph graph = NULL;

    if (cupti_driver()->capture_info(cupti_call_stream(call), &status, NULL, &graph, NULL, NULL) ==
            CUDA_SUCCESS &&
        graph)
        graph_was_made(graph);
}

static void tell_of_copies(CUgraph original, CUgraphExec exec, const struct profiler_node *nodes,
                           unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct cupti_graph_data data = {
            .graph = (CUgraph)exec,
            .original_graph = original,
            .node = (CUgraphNode)(uintptr_t)cupti_graph_node(exec, i),
            .original_node = nodes[i].original,
            .type = nodes[i].type,
        };
        tell(CUPTI_GRAPHNODE_CREATED, &data);
        tell(CUPTI_GRAPHNODE_CLONED, &data);
    }
}

/* The first arguments of cuGraphInstantiate() in all of its forms. */
static void exec_was_made(const struct profiler_call *call)
{
    const struct {
        CUgraphExec *exec;
        CUgraph graph;
    } *arguments = call->arguments;
    struct cupti_graph_data data = {.graph = arguments->graph, .exec = *arguments->exec};
    unsigned count = cupti_driver()->profiler->exec_nodes(data.exec, 0, NULL);
    struct profiler_node *nodes = calloc(count + 1, sizeof(*nodes));

    if (nodes) {
        cupti_driver()->profiler->exec_nodes(data.exec, count, nodes);
        tell_of_copies(data.graph, data.exec, nodes, count);
    }
    free(nodes);
    tell(CUPTI_GRAPHEXEC_CREATED, &data);
}

/* The first arguments of cuGraphClone(). */
static void graph_was_cloned(const struct profiler_call *call)
{
    const struct {
        CUgraph *clone;
        CUgraph original;
    } *arguments = call->arguments;
    struct cupti_graph_data data = {
        .graph = *arguments->clone,
        .original_graph = arguments->original,
    };

    tell(CUPTI_GRAPH_CLONED, &data);
}

/* The second argument of cuGraphInstantiate() in all of its forms. */
static void exec_is_being_made(const struct profiler_call *call)
{
    const struct {
        CUgraphExec *exec;
        CUgraph graph;
    } *arguments = call->arguments;
    struct cupti_graph_data data = {.graph = arguments->graph};

    tell(CUPTI_GRAPHEXEC_CREATE_STARTING, &data);
}

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

static bool wants_any(void)
{
    for (uint32_t cbid = CUPTI_CONTEXT_DESTROY_STARTING; cbid <= CUPTI_GRAPHNODE_CLONED; cbid++)
        if (wants(cbid))
            return true;
    return false;
}

void cupti_resource_leave(const struct profiler_call *call)
{
    if (call->runtime_cbid || call->result != CUDA_SUCCESS || !call->arguments || !wants_any())
        return;
    if (begins_with(call->name, "cuGraphInstantiate"))
        exec_was_made(call);
    else if (!strcmp(call->name, "cuInit"))
        cupti_callback_resource(CUPTI_CU_INIT_FINISHED,
                                &(struct cupti_resource_data){.stream = NULL});
    else if (!strcmp(call->name, "cuGraphClone"))
        graph_was_cloned(call);
    else if (!strcmp(call->name, "cuGraphCreate"))
        graph_was_made(**(CUgraph *const *)call->arguments);
    else if (begins_with(call->name, "cuGraphAdd") && strstr(call->name, "Node"))
        node_was_added(call);
    else if (begins_with(call->name, "cuStreamCreate"))
        stream_was_made(call);
    else if (begins_with(call->name, "cuStreamBeginCapture"))
        capture_began(call);
    else if (may_be_captured(call->name))
        work_was_captured(call);
}

static void graph_changes(const struct profiler_call *call)
{
    struct cupti_graph_data data = {.graph = NULL};

    if (begins_with(call->name, "cuGraphInstantiate")) {
        exec_is_being_made(call);
    } else if (!strcmp(call->name, "cuGraphExecDestroy")) {
        data.exec = *(const CUgraphExec *)call->arguments;
        tell(CUPTI_GRAPHEXEC_DESTROY_STARTING, &data);
    } else if (!strcmp(call->name, "cuGraphDestroy")) {
        data.graph = *(const CUgraph *)call->arguments;
        tell(CUPTI_GRAPH_DESTROY_STARTING, &data);
    } else if (!strcmp(call->name, "cuGraphDestroyNode")) {
        data.node = *(const CUgraphNode *)call->arguments;
        tell(CUPTI_GRAPHNODE_DESTROY_STARTING, &data);
    }
}

/* The first argument of each is the handle. */
void cupti_resource_enter(const struct profiler_call *call)
{
    if (call->runtime_cbid || !call->arguments)
        return;
    if (begins_with(call->name, "cuGraph"))
        graph_changes(call);
    else if (begins_with(call->name, "cuStreamDestroy"))
        stream_ends(*(const CUstream *)call->arguments);
}
