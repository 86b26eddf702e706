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

struct batch_node {
    CUgraphNode driver;
    bool known; /* the next two hold what it was set to last */
    struct launch launch;
    unsigned char *params;
    uint32_t params_room;
};

struct graph_batch {
    CUgraph graph;
    CUgraphExec exec;
    unsigned length;
    struct batch_node nodes[];
};

static bool node_has_room(struct batch_node *node, uint32_t size)
{
    if (size <= node->params_room)
        return true;
    free(node->params);
    node->params = malloc(size);
    node->params_room = node->params ? size : 0;
    return node->params;
}

/* So that the same launch need not be set again. */
static void node_remember(struct batch_node *node, const struct launch *launch)
{
    node->launch = *launch;
    node->launch.params = NULL;
    node->known = node_has_room(node, launch->shape.params_size);
    if (node->known && launch->shape.params_size)
        memcpy(node->params, launch->params, launch->shape.params_size);
}

static bool node_is(const struct batch_node *node, const struct launch *launch)
{
    const struct launch *last = &node->launch;

    return node->known && last->function == launch->function &&
           !memcmp(&last->shape, &launch->shape, sizeof(last->shape)) &&
           (!last->shape.params_size ||
            !memcmp(node->params, launch->params, last->shape.params_size));
}

/* The priority is a hint: a driver without it runs the node at normal priority. */
static void node_set_priority(const struct batch_node *node, int priority)
{
    const CUlaunchAttributeValue value = {.priority = priority};

    if (priority && driver.cuGraphKernelNodeSetAttribute)
        driver.cuGraphKernelNodeSetAttribute(node->driver, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
}

/* What the node of a function refuses, it always refuses: the function uses clusters, or launches
 * kernels itself. A launch with a mistake gets its error when it is made by itself. */
static void note_refusal(struct function *function, CUresult result)
{
    function->not_batchable = !cuda_error_is_fatal(result);
}

static CUresult node_add(const struct node_priorities *priorities, struct graph_batch *batch,
                         unsigned i, const struct launch *launch)
{
    struct batch_node *node = &batch->nodes[i];
    struct kernel_call call;
    CUresult result;

    kernel_call_init(&call, launch);
    result = driver.cuGraphAddKernelNode_v2(&node->driver, batch->graph,
                                            i ? &batch->nodes[i - 1].driver : NULL, i ? 1 : 0,
                                            &call.params);

    if (result != CUDA_SUCCESS) {
        note_refusal(launch->function, result);
        return result;
    }
    node_set_priority(node, launch->urgent ? priorities->urgent : priorities->usual);
    node_remember(node, launch);
    return CUDA_SUCCESS;
}

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
    note_refusal(launch->function, result);
    return false;
}

void graph_batch_destroy(struct graph_batch *batch)
{
    if (batch->exec)
        driver.cuGraphExecDestroy(batch->exec);
    if (batch->graph)
        driver.cuGraphDestroy(batch->graph);
    for (unsigned i = 0; i < batch->length; i++)
        free(batch->nodes[i].params);
    free(batch);
}

struct graph_batch *graph_batch_create(const struct node_priorities *priorities,
                                       const struct launch *launches, unsigned length)
{
    struct graph_batch *batch = calloc(1, sizeof(*batch) + length * sizeof(batch->nodes[0]));

    if (!batch)
        return NULL;
    batch->length = length;
    CUresult result = driver.cuGraphCreate(&batch->graph, 0);
    for (unsigned i = 0; result == CUDA_SUCCESS && i < length; i++)
        result = node_add(priorities, batch, i, &launches[i]);
    if (result == CUDA_SUCCESS)
        result = driver.cuGraphInstantiateWithFlags(&batch->exec, batch->graph, 0);
    if (result == CUDA_SUCCESS)
        return batch;
    graph_batch_destroy(batch);
    return NULL;
}

/* Programs mostly launch the same kernels again. */
bool graph_batch_set(struct graph_batch *batch, const struct launch *launches)
{
    struct batch_node *end = batch->nodes + batch->length;

    for (struct batch_node *node = batch->nodes; node < end; node++, launches++) {
        if (!node_is(node, launches) && !node_set(batch, node, launches))
            return false;
    }
    return true;
}

bool graph_batch_launch(const struct graph_batch *batch, CUstream stream)
{
    return driver.cuGraphLaunch(batch->exec, stream) == CUDA_SUCCESS;
}

unsigned graph_batch_length(const struct graph_batch *batch)
{
    return batch->length;
}

bool graph_batch_uses(const struct graph_batch *batch, const struct module *module)
{
    for (unsigned i = 0; i < batch->length; i++) {
        if (batch->nodes[i].launch.function->module == module)
            return true;
    }
    return false;
}
