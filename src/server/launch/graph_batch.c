/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graph batches are launched again and again, each time with other kernels: setting a node's
 * parameters changes later launches and none that was made before.
 */
#include "graph_batch.h"

#include <stdlib.h>
#include <string.h>

#include "capacity.h"
#include "cuda_error.h"
#include "function.h"
#include "kernel_call.h"
#include "loader.h"

/* How often a length must be wanted before its batch is created. */
#define WANTED_OFTEN 3u

/* Of capacity.h. */
#define SLOTS 1u

/* How many bytes of a node's parameters are remembered, so that the same launch need not be set
 * again. */
#define REMEMBERED_PARAMS 128u

static const unsigned lengths[GRAPH_BATCH_KINDS] = {16, 8, 4, 2};

_Static_assert(GRAPH_BATCH_MAX == 16, "the longest of them");

struct batch_node {
    CUgraphNode driver;
    bool known; /* the next two hold what it was set to last */
    struct launch launch;
    unsigned char params[REMEMBERED_PARAMS];
};

struct graph_batch {
    CUgraph graph;
    CUgraphExec exec;
    unsigned length;
    struct batch_node nodes[GRAPH_BATCH_MAX];
};

static void node_remember(struct batch_node *node, const struct launch *launch)
{
    node->launch = *launch;
    node->launch.params = NULL;
    node->known = launch->shape.params_size <= sizeof(node->params);
    if (node->known)
        memcpy(node->params, launch->params, launch->shape.params_size);
}

static bool node_is(const struct batch_node *node, const struct launch *launch)
{
    const struct launch *last = &node->launch;

    return node->known && last->function == launch->function &&
           !memcmp(&last->shape, &launch->shape, sizeof(last->shape)) &&
           !memcmp(node->params, launch->params, launch->shape.params_size);
}

/* The priority is a hint: a driver without it runs the node at normal priority. */
static void node_set_priority(const struct batch_node *node, int priority)
{
    const CUlaunchAttributeValue value = {.priority = priority};

    if (priority && driver.cuGraphKernelNodeSetAttribute)
        driver.cuGraphKernelNodeSetAttribute(node->driver, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
}

static CUresult node_add(const struct graph_batches *batches, struct graph_batch *batch, unsigned i,
                         const struct launch *launch)
{
    struct batch_node *node = &batch->nodes[i];
    struct kernel_call call;
    CUresult result;

    kernel_call_init(&call, launch);
    result = driver.cuGraphAddKernelNode_v2(&node->driver, batch->graph,
                                            i ? &batch->nodes[i - 1].driver : NULL, i ? 1 : 0,
                                            &call.params);

    if (result != CUDA_SUCCESS)
        return result;
    node_set_priority(node, launch->urgent ? batches->urgent_priority : batches->priority);
    node_remember(node, launch);
    return CUDA_SUCCESS;
}

/* What the node of a function refuses, it always refuses: the function uses clusters, or launches
 * kernels itself. A launch with a mistake gets its error when it is made by itself. */
static bool node_set(const struct graph_batch *batch, struct batch_node *node,
                     const struct launch *launch)
{
    struct kernel_call call;
    CUresult result;

    kernel_call_init(&call, launch);
    result = driver.cuGraphExecKernelNodeSetParams_v2(batch->exec, node->driver, &call.params);

    if (result == CUDA_SUCCESS) {
        node_remember(node, launch);
        return true;
    }
    node->known = false;
    launch->function->not_batchable = !cuda_error_is_fatal(result);
    return false;
}

static void graph_batch_destroy(struct graph_batch *batch)
{
    if (batch->exec)
        driver.cuGraphExecDestroy(batch->exec);
    if (batch->graph)
        driver.cuGraphDestroy(batch->graph);
    free(batch);
}

/* Created with the launches that it is wanted for. NULL when the driver refuses. */
static struct graph_batch *graph_batch_create(const struct graph_batches *batches,
                                              const struct launch *launches, unsigned length)
{
    struct graph_batch *batch = calloc(1, sizeof(*batch));

    if (!batch)
        return NULL;
    batch->length = length;
    CUresult result = driver.cuGraphCreate(&batch->graph, 0);
    for (unsigned i = 0; result == CUDA_SUCCESS && i < length; i++)
        result = node_add(batches, batch, i, &launches[i]);
    if (result == CUDA_SUCCESS)
        result = driver.cuGraphInstantiateWithFlags(&batch->exec, batch->graph, 0);
    if (result == CUDA_SUCCESS)
        return batch;
    graph_batch_destroy(batch);
    return NULL;
}

/* Programs mostly launch the same kernels again. */
static bool graph_batch_set(struct graph_batch *batch, const struct launch *launches)
{
    struct batch_node *end = batch->nodes + batch->length;

    for (struct batch_node *node = batch->nodes; node < end; node++, launches++) {
        if (!node_is(node, launches) && !node_set(batch, node, launches))
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
static struct graph_batch *prepare(struct graph_batches *batches, unsigned kind,
                                   const struct launch *launches)
{
    struct graph_batch *batch = batches->batch[kind];

    if (batch)
        return graph_batch_set(batch, launches) ? batch : NULL;
    if (++batches->wanted[kind] < WANTED_OFTEN || !capacity_take(batches->device, SLOTS))
        return NULL;
    batch =
        driver_has_graph_batches() ? graph_batch_create(batches, launches, lengths[kind]) : NULL;
    if (!batch)
        capacity_give(batches->device, SLOTS);
    batches->batch[kind] = batch;
    batches->unavailable = !batch;
    return batch;
}

unsigned graph_batches_launch(struct graph_batches *batches, CUstream stream,
                              const struct launch *launches, unsigned count)
{
    unsigned length = batchable(launches, count);

    for (unsigned kind = 0; kind < GRAPH_BATCH_QUEUED_KINDS && !batches->unavailable; kind++) {
        if (length < lengths[kind])
            continue;
        struct graph_batch *batch = prepare(batches, kind, launches);
        if (!batch)
            return 0;
        return driver.cuGraphLaunch(batch->exec, stream) == CUDA_SUCCESS ? batch->length : 0;
    }
    return 0;
}

bool graph_batches_launch_fenced(struct graph_batches *batches, CUstream stream,
                                 const struct launch launches[2])
{
    if (batches->unavailable || batchable(launches, 2) < 2)
        return false;
    struct graph_batch *batch = prepare(batches, GRAPH_BATCH_FENCED, launches);

    return batch && driver.cuGraphLaunch(batch->exec, stream) == CUDA_SUCCESS;
}

static void drop(struct graph_batches *batches, unsigned kind)
{
    if (!batches->batch[kind])
        return;
    graph_batch_destroy(batches->batch[kind]);
    batches->batch[kind] = NULL;
    capacity_give(batches->device, SLOTS);
}

static bool graph_batch_uses(const struct graph_batch *batch, const struct module *module)
{
    for (unsigned i = 0; i < batch->length; i++) {
        if (batch->nodes[i].launch.function->module == module)
            return true;
    }
    return false;
}

void graph_batches_forget_module(struct graph_batches *batches, const struct module *module)
{
    for (unsigned kind = 0; kind < GRAPH_BATCH_KINDS; kind++) {
        struct graph_batch *batch = batches->batch[kind];
        if (!batch || !graph_batch_uses(batch, module))
            continue;
        drop(batches, kind);
    }
}

void graph_batches_fini(struct graph_batches *batches)
{
    for (unsigned kind = 0; kind < GRAPH_BATCH_KINDS; kind++)
        drop(batches, kind);
}
