/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that follows the nodes of graphs with CUPTI as Triton's profiler does. It is called
 * back when nodes are made and copied into a launchable graph. It finds each piece of work under
 * the copy that did it. One graph is captured. The other is made of nodes, with a host function
 * between two segments of work, and the first as a child behind them. Prints counts, and what is
 * wrong.
 *
 *     graphed             natively, work of a child has ids of which no callback has told
 *     graphed children    finds that work as well
 */
#include <cupti.h>
#include <string.h>

#include "collect.h"

#define SIZE 4096u
#define NODES_MAX 64u

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                          ".visible .entry first()\n{\nret;\n}\n"
                          ".visible .entry second()\n{\nret;\n}\n";

/* A copy in a launchable graph. */
struct copy {
    uint32_t graph;
    uint64_t node, original;
};

static CUfunction first, second;
static CUdeviceptr memory;
static CUstream stream;
static uint64_t created[NODES_MAX]; /* ids */
static struct copy copies[NODES_MAX];
static unsigned created_count, copy_count, graphs, clones, ended_nodes, execs, ended;

/* ---- callbacks ---- */

static int is_created(uint64_t node)
{
    for (unsigned i = 0; i < created_count; i++)
        if (created[i] == node)
            return 1;
    return 0;
}

static void node_was_created(const CUpti_GraphData *graph)
{
    uint64_t node = 0;

    MUST(cuptiGetGraphNodeId(graph->node, &node));
    check(!is_created(node), "a node is made twice");
    if (created_count < NODES_MAX)
        created[created_count++] = node;
}

static void node_was_copied(const CUpti_GraphData *graph)
{
    struct copy *copy = &copies[copy_count];

    if (copy_count == NODES_MAX)
        return;
    copy_count++;
    MUST(cuptiGetGraphId(graph->graph, &copy->graph));
    MUST(cuptiGetGraphNodeId(graph->node, &copy->node));
    MUST(cuptiGetGraphNodeId(graph->originalNode, &copy->original));
    check(is_created(copy->node), "a copy that was not made");
}

static void node_ends(const CUpti_GraphData *graph)
{
    uint64_t node = 0;

    MUST(cuptiGetGraphNodeId(graph->node, &node));
    ended_nodes += is_created(node);
}

static void CUPTIAPI on_callback(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                                 const void *data)
{
    const CUpti_ResourceData *resource = data;

    if (!resource) /* the callback of cuInit need not have any */
        return;
    const CUpti_GraphData *graph = resource->resourceDescriptor;
    if (cbid == CUPTI_CBID_RESOURCE_GRAPH_CREATED)
        graphs++;
    else if (cbid == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED)
        node_was_created(graph);
    else if (cbid == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED)
        node_was_copied(graph);
    else if (cbid == CUPTI_CBID_RESOURCE_GRAPH_CLONED)
        clones++;
    else if (cbid == CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING)
        node_ends(graph);
    else if (cbid == CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED)
        execs += graph->graph && graph->graphExec;
    else if (cbid == CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING)
        ended += graph->graphExec != NULL;
}

/* ---- graphs ---- */

static void capture(CUgraph *ret_graph)
{
    CUlaunchConfig configuration = {.gridDimX = 1,
                                    .gridDimY = 1,
                                    .gridDimZ = 1,
                                    .blockDimX = 1,
                                    .blockDimY = 1,
                                    .blockDimZ = 1,
                                    .hStream = stream};

    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(cuLaunchKernel(first, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
    MUST(cuMemsetD8Async(memory, 1, SIZE, stream));
    MUST(cuLaunchKernelEx(&configuration, second, NULL, NULL));
    MUST(cuStreamEndCapture(stream, ret_graph));
}

static void CUDA_CB do_nothing(void *unused)
{
}

static CUgraphNode add_kernel(CUgraph graph, CUfunction function, const CUgraphNode *behind)
{
    CUDA_KERNEL_NODE_PARAMS kernel = {.func = function,
                                      .gridDimX = 1,
                                      .gridDimY = 1,
                                      .gridDimZ = 1,
                                      .blockDimX = 1,
                                      .blockDimY = 1,
                                      .blockDimZ = 1};
    CUgraphNode node;

    MUST(cuGraphAddKernelNode(&node, graph, behind, behind != NULL, &kernel));
    return node;
}

static void build(CUgraph *ret_graph, CUgraph child)
{
    CUDA_HOST_NODE_PARAMS host = {.fn = do_nothing};
    CUgraphNode kernel, function, last;

    MUST(cuGraphCreate(ret_graph, 0));
    kernel = add_kernel(*ret_graph, first, NULL);
    MUST(cuGraphAddHostNode(&function, *ret_graph, &kernel, 1, &host));
    last = add_kernel(*ret_graph, second, &function);
    MUST(cuGraphAddChildGraphNode(&last, *ret_graph, &last, 1, child));
}

/* ---- records ---- */

static int has_copy(uint32_t graph, uint64_t node)
{
    for (unsigned i = 0; i < copy_count; i++)
        if (copies[i].graph == graph && copies[i].node == node)
            return 1;
    return 0;
}

static void check_records(uint32_t graph, unsigned expected)
{
    unsigned kernels = 0, others = 0, found = 0, distinct = 0;
    uint64_t last = 0;

    for (unsigned i = 0; i < record_count; i++) {
        const CUpti_ActivityKernel9 *kernel = (const void *)records[i];
        const CUpti_ActivityMemset4 *set = (const void *)records[i];
        int is_kernel = kernel->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
        uint64_t node = is_kernel ? kernel->graphNodeId : set->graphNodeId;
        check((is_kernel ? kernel->graphId : set->graphId) == graph, "work of another graph");
        found += has_copy(graph, node);
        distinct += node != last;
        last = node;
        kernels += is_kernel;
        others += !is_kernel;
    }
    check(found >= expected, "work of a node that was not copied");
    printf("%u kernels, %u memsets, %u nodes\n", kernels, others, distinct);
}

/* `expected` pieces of its work are of nodes that a callback has told of. */
static void run(CUgraph graph, unsigned expected)
{
    CUgraphExec exec;
    uint32_t id = 0;

    MUST(cuGraphInstantiate(&exec, graph, 0));
    MUST(cuptiGetGraphExecId(exec, &id));
    record_count = 0;
    MUST(cuGraphLaunch(exec, stream));
    MUST(cuStreamSynchronize(stream));
    MUST(cuptiActivityFlushAll(0));
    check_records(id, expected);
    MUST(cuGraphExecDestroy(exec));
}

static void begin(void)
{
    CUcontext context;
    CUmodule module;

    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    MUST(cuModuleLoadData(&module, ptx));
    MUST(cuModuleGetFunction(&first, module, "first"));
    MUST(cuModuleGetFunction(&second, module, "second"));
    MUST(cuMemAlloc(&memory, SIZE));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
}

static void forget(void)
{
    created_count = copy_count = graphs = clones = ended_nodes = 0;
}

int main(int argc, char **argv)
{
    CUpti_SubscriberHandle subscriber;
    CUgraph captured, built, clone;
    int with_children = argc == 2 && !strcmp(argv[1], "children");

    MUST(cuptiSubscribe(&subscriber, on_callback, NULL));
    MUST(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE));
    MUST(cuptiActivityRegisterCallbacks(request, complete));
    MUST(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    MUST(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET));
    begin();
    capture(&captured);
    printf("%u graph, %u nodes captured\n", graphs, created_count);
    run(captured, 3);
    forget();
    build(&built, captured);
    printf("%u graphs, %u nodes added\n", graphs, created_count);
    run(built, with_children ? 5 : 2);
    ended_nodes = 0;
    MUST(cuGraphDestroy(built));
    printf("%u nodes ended\n", ended_nodes);
    forget();
    MUST(cuGraphClone(&clone, captured));
    printf("%u graph, %u clone, %u nodes copied\n", graphs, clones, copy_count);
    printf("%u execs, %u ended\n", execs, ended);
    return 0;
}
