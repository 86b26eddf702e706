/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chains are launched again and again, each time with other kernels: setting a node's parameters
 * changes the launches to come and none that was made before.
 */
#include "chain.h"

#include <stdlib.h>
#include <string.h>

#include "cuda_error.h"
#include "kernel_call.h"
#include "loader.h"
#include "objects.h"

/* How often a length must be wanted before its chain is made. */
#define WANTED_OFTEN 3u

/* What is remembered of a node, so that the same launch need not be set again. */
#define REMEMBERED_PARAMS 128u

static const unsigned lengths[CHAIN_KINDS] = {16, 8, 4, 2};

_Static_assert(CHAIN_LENGTH_MAX == 16, "the longest of them");

struct link {
    CUgraphNode node;
    bool known; /* what it was set to last is in the next two */
    struct launch launch;
    unsigned char params[REMEMBERED_PARAMS];
};

struct chain {
    CUgraph graph;
    CUgraphExec exec;
    unsigned length;
    struct link links[CHAIN_LENGTH_MAX];
};

static void link_remember(struct link *link, const struct launch *launch)
{
    link->launch = *launch;
    link->launch.params = NULL;
    link->known = launch->shape.params_size <= sizeof(link->params);
    if (link->known)
        memcpy(link->params, launch->params, launch->shape.params_size);
}

static bool link_is(const struct link *link, const struct launch *launch)
{
    const struct launch *last = &link->launch;

    return link->known && last->function == launch->function &&
           !memcmp(&last->shape, &launch->shape, sizeof(last->shape)) &&
           !memcmp(link->params, launch->params, launch->shape.params_size);
}

/* A hint: a driver without it runs the node at normal priority. */
static void link_prioritise(const struct link *link, int priority)
{
    const CUlaunchAttributeValue value = {.priority = priority};

    if (priority && driver.cuGraphKernelNodeSetAttribute)
        driver.cuGraphKernelNodeSetAttribute(link->node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
}

static CUresult link_add(const struct chains *chains, struct chain *chain, unsigned i,
                         const struct launch *launch)
{
    struct link *link = &chain->links[i];
    struct kernel_call call;
    CUresult result;

    kernel_call_init(&call, launch);
    result = driver.cuGraphAddKernelNode_v2(
        &link->node, chain->graph, i ? &chain->links[i - 1].node : NULL, i ? 1 : 0, &call.params);

    if (result != CUDA_SUCCESS)
        return result;
    link_prioritise(link, launch->urgent ? chains->urgent_priority : chains->priority);
    link_remember(link, launch);
    return CUDA_SUCCESS;
}

/* What a function's node refuses it refuses always: it uses clusters, or launches kernels itself. A
 * launch that is wrong in itself gets its error when it is made by itself. */
static bool link_set(const struct chain *chain, struct link *link, const struct launch *launch)
{
    struct kernel_call call;
    CUresult result;

    kernel_call_init(&call, launch);
    result = driver.cuGraphExecKernelNodeSetParams_v2(chain->exec, link->node, &call.params);

    if (result == CUDA_SUCCESS) {
        link_remember(link, launch);
        return true;
    }
    link->known = false;
    launch->function->unchained = !cuda_error_is_fatal(result);
    return false;
}

static void chain_destroy(struct chain *chain)
{
    if (!chain)
        return;
    if (chain->exec)
        driver.cuGraphExecDestroy(chain->exec);
    if (chain->graph)
        driver.cuGraphDestroy(chain->graph);
    free(chain);
}

/* Made of the launches that it is wanted for. NULL when the driver does not want to. */
static struct chain *chain_create(const struct chains *chains, const struct launch *launches,
                                  unsigned length)
{
    struct chain *chain = calloc(1, sizeof(*chain));

    if (!chain)
        return NULL;
    chain->length = length;
    CUresult result = driver.cuGraphCreate(&chain->graph, 0);
    for (unsigned i = 0; result == CUDA_SUCCESS && i < length; i++)
        result = link_add(chains, chain, i, &launches[i]);
    if (result == CUDA_SUCCESS)
        result = driver.cuGraphInstantiateWithFlags(&chain->exec, chain->graph, 0);
    if (result == CUDA_SUCCESS)
        return chain;
    chain_destroy(chain);
    return NULL;
}

/* Programs mostly launch the same again. */
static bool chain_set(struct chain *chain, const struct launch *launches)
{
    struct link *end = chain->links + chain->length;

    for (struct link *link = chain->links; link < end; link++, launches++) {
        if (!link_is(link, launches) && !link_set(chain, link, launches))
            return false;
    }
    return true;
}

static bool driver_has_chains(void)
{
    return driver.cuGraphCreate && driver.cuGraphAddKernelNode_v2 &&
           driver.cuGraphInstantiateWithFlags && driver.cuGraphExecKernelNodeSetParams_v2 &&
           driver.cuGraphLaunch && driver.cuGraphExecDestroy && driver.cuGraphDestroy;
}

/* How many of them can go into one chain. */
static unsigned chainable(const struct launch *launches, unsigned count)
{
    unsigned length = 0;

    while (length < count && !launches[length].function->unchained)
        length++;
    return length;
}

/* The chain of this kind, with these launches in it, or NULL. */
static struct chain *prepare(struct chains *chains, unsigned kind, const struct launch *launches)
{
    struct chain *chain = chains->chain[kind];

    if (chain)
        return chain_set(chain, launches) ? chain : NULL;
    if (++chains->wanted[kind] < WANTED_OFTEN)
        return NULL;
    chain = driver_has_chains() ? chain_create(chains, launches, lengths[kind]) : NULL;
    chains->chain[kind] = chain;
    chains->never = !chain;
    return chain;
}

unsigned chains_launch(struct chains *chains, CUstream stream, const struct launch *launches,
                       unsigned count)
{
    unsigned length = chainable(launches, count);

    for (unsigned kind = 0; kind < CHAIN_QUEUED_KINDS && !chains->never; kind++) {
        if (length < lengths[kind])
            continue;
        struct chain *chain = prepare(chains, kind, launches);
        if (!chain)
            return 0;
        return driver.cuGraphLaunch(chain->exec, stream) == CUDA_SUCCESS ? chain->length : 0;
    }
    return 0;
}

bool chains_launch_fenced(struct chains *chains, CUstream stream, const struct launch launches[2])
{
    if (chains->never || chainable(launches, 2) < 2)
        return false;
    struct chain *chain = prepare(chains, CHAIN_FENCED, launches);

    return chain && driver.cuGraphLaunch(chain->exec, stream) == CUDA_SUCCESS;
}

static bool chain_knows(const struct chain *chain, const struct module *module)
{
    for (unsigned i = 0; i < chain->length; i++) {
        if (chain->links[i].launch.function->module == module)
            return true;
    }
    return false;
}

void chains_forget_module(struct chains *chains, const struct module *module)
{
    for (unsigned kind = 0; kind < CHAIN_KINDS; kind++) {
        struct chain *chain = chains->chain[kind];
        if (!chain || !chain_knows(chain, module))
            continue;
        chain_destroy(chain);
        chains->chain[kind] = NULL;
    }
}

void chains_fini(struct chains *chains)
{
    for (unsigned kind = 0; kind < CHAIN_KINDS; kind++) {
        chain_destroy(chains->chain[kind]);
        chains->chain[kind] = NULL;
    }
}
