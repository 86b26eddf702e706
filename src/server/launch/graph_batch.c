/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graph batches are launched again and again, each time with other kernels: setting a node's
 * parameters changes later launches and none that was made before.
 */
#include "graph_batch.h"

#include <stdlib.h>
#include <string.h>

#include "cuda_error.h"
#include "function.h"
#include "kernel_call.h"
#include "loader.h"

/* How often a length must be wanted before its batch is created. */
#define WANTED_OFTEN 3u

/* How many bytes of a node's parameters are remembered, so that the same launch need not be set
 * again. */
#define REMEMBERED_PARAMS 128u

static const unsigned lengths[GRAPH_BATCH_KINDS] = {16, 8, 4, 2};

_Static_assert(GRAPH_BATCH_MAX == 16, "the longest of them");

struct batch_node {
    CUgraphNode node;
    bool known; /* the next two hold what it was set to last */
    struct launch launch;
    unsigned char params[REMEMBERED_PARAMS];
};

struct graph_batch {
    CUgraph graph;
    CUgraphExec exec;
    unsigned length;
    struct batch_node links[GRAPH_BATCH_MAX];
};

static void node_remember(struct batch_node *link, const struct launch *launch)
{
    link->launch = *launch;
    link->launch.params = NULL;
    link->known = launch->shape.params_size <= sizeof(link->params);
    if (link->known)
        memcpy(link->params, launch->params, launch->shape.params_size);
}

static bool node_is(const struct batch_node *link, const struct launch *launch)
{
    const struct launch *last = &link->launch;

    return link->known && last->function == launch->function &&
           !memcmp(&last->shape, &launch->shape, sizeof(last->shape)) &&
           !memcmp(link->params, launch->params, launch->shape.params_size);
}

/* The priority is a hint: a driver without it runs the node at normal priority. */
static void node_set_priority(const struct batch_node *link, int priority)
{
    const CUlaunchAttributeValue value = {.priority = priority};

    if (priority && driver.cuGraphKernelNodeSetAttribute)
        driver.cuGraphKernelNodeSetAttribute(link->node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
}

static CUresult node_add(const struct graph_batches *graph_batches, struct graph_batch *chain,
                         unsigned i, const struct launch *launch)
{
    struct batch_node *link = &chain->links[i];
    struct kernel_call call;
    CUresult result;

    kernel_call_init(&call, launch);
    result = driver.cuGraphAddKernelNode_v2(
        &link->node, chain->graph, i ? &chain->links[i - 1].node : NULL, i ? 1 : 0, &call.params);

    if (result != CUDA_SUCCESS)
        return result;
    node_set_priority(link,
                      launch->urgent ? graph_batches->urgent_priority : graph_batches->priority);
    node_remember(link, launch);
    return CUDA_SUCCESS;
}

/* What the node of a function refuses, it always refuses: the function uses clusters, or launches
 * kernels itself. A launch with a mistake gets its error when it is made by itself. */
static bool node_set(const struct graph_batch *chain, struct batch_node *link,
                     const struct launch *launch)
{
    struct kernel_call call;
    CUresult result;

    kernel_call_init(&call, launch);
    result = driver.cuGraphExecKernelNodeSetParams_v2(chain->exec, link->node, &call.params);

    if (result == CUDA_SUCCESS) {
        node_remember(link, launch);
        return true;
    }
    link->known = false;
    launch->function->not_batchable = !cuda_error_is_fatal(result);
    return false;
}

static void graph_batch_destroy(struct graph_batch *chain)
{
    if (!chain)
        return;
    if (chain->exec)
        driver.cuGraphExecDestroy(chain->exec);
    if (chain->graph)
        driver.cuGraphDestroy(chain->graph);
    free(chain);
}

/* Created with the launches that it is wanted for. NULL when the driver refuses. */
static struct graph_batch *graph_batch_create(const struct graph_batches *graph_batches,
                                              const struct launch *launches, unsigned length)
{
    struct graph_batch *chain = calloc(1, sizeof(*chain));

    if (!chain)
        return NULL;
    chain->length = length;
    CUresult result = driver.cuGraphCreate(&chain->graph, 0);
    for (unsigned i = 0; result == CUDA_SUCCESS && i < length; i++)
        result = node_add(graph_batches, chain, i, &launches[i]);
    if (result == CUDA_SUCCESS)
        result = driver.cuGraphInstantiateWithFlags(&chain->exec, chain->graph, 0);
    if (result == CUDA_SUCCESS)
        return chain;
    graph_batch_destroy(chain);
    return NULL;
}

/* Programs mostly launch the same kernels again. */
static bool graph_batch_set(struct graph_batch *chain, const struct launch *launches)
{
    struct batch_node *end = chain->links + chain->length;

    for (struct batch_node *link = chain->links; link < end; link++, launches++) {
        if (!node_is(link, launches) && !node_set(chain, link, launches))
            return false;
    }
    return true;
}

static bool driver_has_graph_batches(void)
{
    return driver.cuGraphCreate && driver.cuGraphAddKernelNode_v2 &&
           driver.cuGraphInstantiateWithFlags && driver.cuGraphExecKernelNodeSetParams_v2 &&
           driver.cuGraphLaunch && driver.cuGraphExecDestroy && driver.cuGraphDestroy;
}

/* How many of them can go into one batch. */
static unsigned batchable(const struct launch *launches, unsigned count)
{
    unsigned length = 0;

    while (length < count && !launches[length].function->not_batchable)
        length++;
    return length;
}

/* The batch of this kind, set to these launches, or NULL. */
static struct graph_batch *prepare(struct graph_batches *graph_batches, unsigned kind,
                                   const struct launch *launches)
{
    struct graph_batch *chain = graph_batches->chain[kind];

    if (chain)
        return graph_batch_set(chain, launches) ? chain : NULL;
    if (++graph_batches->wanted[kind] < WANTED_OFTEN)
        return NULL;
    chain = driver_has_graph_batches() ? graph_batch_create(graph_batches, launches, lengths[kind])
                                       : NULL;
    graph_batches->chain[kind] = chain;
    graph_batches->never = !chain;
    return chain;
}

unsigned graph_batches_launch(struct graph_batches *graph_batches, CUstream stream,
                              const struct launch *launches, unsigned count)
{
    unsigned length = batchable(launches, count);

    for (unsigned kind = 0; kind < GRAPH_BATCH_QUEUED_KINDS && !graph_batches->never; kind++) {
        if (length < lengths[kind])
            continue;
        struct graph_batch *chain = prepare(graph_batches, kind, launches);
        if (!chain)
            return 0;
        return driver.cuGraphLaunch(chain->exec, stream) == CUDA_SUCCESS ? chain->length : 0;
    }
    return 0;
}

bool graph_batches_launch_fenced(struct graph_batches *graph_batches, CUstream stream,
                                 const struct launch launches[2])
{
    if (graph_batches->never || batchable(launches, 2) < 2)
        return false;
    struct graph_batch *chain = prepare(graph_batches, GRAPH_BATCH_FENCED, launches);

    return chain && driver.cuGraphLaunch(chain->exec, stream) == CUDA_SUCCESS;
}

static bool graph_batch_uses(const struct graph_batch *chain, const struct module *module)
{
    for (unsigned i = 0; i < chain->length; i++) {
        if (chain->links[i].launch.function->module == module)
            return true;
    }
    return false;
}

void graph_batches_forget_module(struct graph_batches *graph_batches, const struct module *module)
{
    for (unsigned kind = 0; kind < GRAPH_BATCH_KINDS; kind++) {
        struct graph_batch *chain = graph_batches->chain[kind];
        if (!chain || !graph_batch_uses(chain, module))
            continue;
        graph_batch_destroy(chain);
        graph_batches->chain[kind] = NULL;
    }
}

void graph_batches_fini(struct graph_batches *graph_batches)
{
    for (unsigned kind = 0; kind < GRAPH_BATCH_KINDS; kind++) {
        graph_batch_destroy(graph_batches->chain[kind]);
        graph_batches->chain[kind] = NULL;
    }
}
