/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that profiles a graph whose kernels decide what of it runs. Its nodes have no records:
 * the launch has one where CUPTI_ACTIVITY_KIND_GRAPH_TRACE is on.
 */
#include <cupti.h>

#include "collect.h"

static const char loop_ptx[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n"
    ".extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);\n"
    ".visible .entry stop(.param .u64 handle)\n"
    "{\n.reg .b64 %h;\nld.param.u64 %h, [handle];\n"
    "{\n.param .b64 a;\nst.param.b64 [a], %h;\n.param .b32 b;\nst.param.b32 [b], 0;\n"
    "call.uni cudaGraphSetConditional, (a, b);\n}\nret;\n}\n";

/* A WHILE node, in which a kernel ends the loop. */
static CUgraphExec make_loop(void)
{
    CUgraphNodeParams loop = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
    CUgraphConditionalHandle handle;
    void *parameters[] = {&handle};
    CUDA_KERNEL_NODE_PARAMS kernel = {.gridDimX = 1,
                                      .gridDimY = 1,
                                      .gridDimZ = 1,
                                      .blockDimX = 1,
                                      .blockDimY = 1,
                                      .blockDimZ = 1,
                                      .kernelParams = parameters};
    CUgraphExec exec;
    CUgraphNode node;
    CUmodule module;
    CUgraph graph;

    MUST(cuModuleLoadData(&module, loop_ptx));
    MUST(cuModuleGetFunction(&kernel.func, module, "stop"));
    MUST(cuGraphCreate(&graph, 0));
    MUST(cuCtxGetCurrent(&loop.conditional.ctx));
    MUST(cuGraphConditionalHandleCreate(&handle, graph, loop.conditional.ctx, 1,
                                        CU_GRAPH_COND_ASSIGN_DEFAULT));
    loop.conditional.handle = handle;
    loop.conditional.type = CU_GRAPH_COND_TYPE_WHILE;
    loop.conditional.size = 1;
    MUST(cuGraphAddNode(&node, graph, NULL, NULL, 0, &loop));
    MUST(cuGraphAddKernelNode(&node, loop.conditional.phGraph_out[0], NULL, 0, &kernel));
    MUST(cuGraphInstantiate(&exec, graph, 0));
    return exec;
}

static CUstream begin(void)
{
    CUcontext context;
    CUstream stream;

    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
}

static void launch(CUgraphExec exec, CUstream stream)
{
    record_count = 0;
    MUST(cuGraphLaunch(exec, stream));
    MUST(cuStreamSynchronize(stream));
    flush();
    printf("%u kernels, %u graphs\n", count_kind(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL),
           count_kind(CUPTI_ACTIVITY_KIND_GRAPH_TRACE));
}

int main(void)
{
    MUST(cuptiActivityRegisterCallbacks(request, complete));
    MUST(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    CUstream stream = begin();
    CUgraphExec exec = make_loop();
    launch(exec, stream);
    MUST(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE));
    launch(exec, stream);
    return 0;
}
