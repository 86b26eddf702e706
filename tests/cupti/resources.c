/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that follows its modules, contexts and graphs by CUPTI's callbacks for resources.
 * Prints what they say in their order.
 *
 *     resources [CUBIN]   with a file of machine code for the device, whose bytes are compared
 */
#include <cupti.h>
#include <string.h>

#include "collect.h"

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                          ".visible .entry small(.param .u64 p)\n{\nret;\n}\n";

static uint32_t loaded; /* the newest module */
static CUgraph graph, cloned;

static void print_module(const char *what, const CUpti_ResourceData *resource)
{
    const CUpti_ModuleResourceData *module = resource->resourceDescriptor;

    check(!strcmp(what, "loaded") || module->moduleId == loaded, "the module that ends");
    check(resource->context != NULL, "the context of a module");
    check(!module->pCubin && !module->cubinSize, "the machine code of PTX");
    printf("module %s\n", what);
    loaded = module->moduleId;
}

static void print_graph(const char *what, const CUpti_ResourceData *resource)
{
    const CUpti_GraphData *data = resource->resourceDescriptor;

    check(!cloned || data->originalGraph == graph || data->graph == cloned, "the graph");
    printf("graph %s\n", what);
}

static void CUPTIAPI on_callback(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                                 const void *data)
{
    const CUpti_ResourceData *resource = data;
    uint32_t id = 0;

    if (domain != CUPTI_CB_DOMAIN_RESOURCE)
        return;
    if (cbid == CUPTI_CBID_RESOURCE_CU_INIT_FINISHED)
        printf("the driver is ready\n");
    else if (cbid == CUPTI_CBID_RESOURCE_MODULE_LOADED)
        print_module("loaded", resource);
    else if (cbid == CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING)
        print_module("ends", resource);
    else if (cbid == CUPTI_CBID_RESOURCE_CONTEXT_CREATED)
        printf("context\n");
    else if (cbid == CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING)
        printf("context ends, id %s\n",
               cuptiGetContextId(resource->context, &id) == CUPTI_SUCCESS && id ? "known" : "lost");
    else if (cbid == CUPTI_CBID_RESOURCE_GRAPH_CLONED)
        print_graph("cloned", resource);
    else if (cbid == CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATE_STARTING)
        print_graph("is instantiated", resource);
}

static void use_modules(void)
{
    CUlibrary library;
    CUfunction function;
    CUkernel kernel;
    CUmodule module;

    MUST(cuModuleLoadData(&module, ptx));
    MUST(cuModuleUnload(module));
    MUST(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
    MUST(cuLibraryGetKernel(&kernel, library, "small"));
    MUST(cuKernelGetFunction(&function, kernel));
    MUST(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&(uint64_t){0}}, NULL));
    MUST(cuCtxSynchronize());
    MUST(cuLibraryUnload(library));
}

static void use_graphs(void)
{
    CUgraphNode node;
    CUgraphExec exec;

    MUST(cuGraphCreate(&graph, 0));
    MUST(cuGraphAddEmptyNode(&node, graph, NULL, 0));
    MUST(cuGraphClone(&cloned, graph));
    MUST(cuGraphInstantiate(&exec, cloned, 0));
}

/* A module that the program leaves ends with its context. */
static void use_context(void)
{
    CUcontext context;
    CUmodule module;

    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    MUST(cuModuleLoadData(&module, ptx));
    MUST(cuDevicePrimaryCtxRelease(0));
}

int main(void)
{
    CUpti_SubscriberHandle subscriber;
    CUcontext context;

    MUST(cuptiSubscribe(&subscriber, on_callback, NULL));
    MUST(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE));
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    use_modules();
    use_graphs();
    MUST(cuDevicePrimaryCtxRelease(0));
    use_context();
    MUST(cuptiUnsubscribe(subscriber));
    return 0;
}
