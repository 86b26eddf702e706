/* SPDX-License-Identifier: Apache-2.0 */
/* See graph_batches.h. */
#include "graph_batches.h"

#include "capacity.h"
#include "function.h"
#include "loader.h"

/* Of capacity.h, for each batch. */
#define SLOTS 1u

static const unsigned lengths[GRAPH_BATCH_KINDS] = {16, 8, 4, 2, 2};

/* How often a length must be wanted before its batch is created. Two launches in one save little.
 */
static const unsigned wanted_often[GRAPH_BATCH_KINDS] = {3, 3, 3, 16, 3};

_Static_assert(GRAPH_BATCH_MAX == 16, "the longest of them");

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

static bool has_refused(const struct launch *launches, unsigned length)
{
    for (unsigned i = 0; i < length; i++) {
        if (launches[i].function->not_batchable)
            return true;
    }
    return false;
}

static struct graph_batch *create(const struct graph_batches *batches,
                                  const struct launch *launches, unsigned length)
{
    struct graph_batch *batch = NULL;

    if (driver_has_graph_batches())
        batch = graph_batch_create(&batches->priorities, launches, length);
    if (!batch)
        capacity_give(batches->device, SLOTS);
    return batch;
}

/* Where little is left, it is for the batches that save the most. These have 16 launches, or a
 * launch and its fence, as all launches of a client that waits for each. */
static bool take_capacity(const struct graph_batches *batches, unsigned kind)
{
    bool saves_most = kind == 0 || kind == GRAPH_BATCH_FENCED;

    return (saves_most || !capacity_is_scarce(batches->device)) &&
           capacity_take(batches->device, SLOTS);
}

/* NULL when there is none yet, or when the driver has refused it. */
static struct graph_batch *find(struct graph_batches *batches, unsigned kind,
                                const struct launch *launches)
{
    if (batches->batch[kind])
        return batches->batch[kind];
    if (++batches->wanted[kind] < wanted_often[kind] || !take_capacity(batches, kind))
        return NULL;
    batches->batch[kind] = create(batches, launches, lengths[kind]);
    batches->unavailable = !batches->batch[kind] && !has_refused(launches, lengths[kind]);
    return batches->batch[kind];
}

/* The longest kind that is not longer than this; GRAPH_BATCH_QUEUED_KINDS: there is none. */
static unsigned kind_for(unsigned length)
{
    unsigned kind = 0;

    while (kind < GRAPH_BATCH_QUEUED_KINDS && lengths[kind] > length)
        kind++;
    return kind;
}

static bool launch_set(struct graph_batch *batch, const struct launch *launches, CUstream stream)
{
    return batch && graph_batch_set(batch, launches) && graph_batch_launch(batch, stream);
}

unsigned graph_batches_launch(struct graph_batches *batches, CUstream stream,
                              const struct launch *launches, unsigned count)
{
    unsigned kind = kind_for(batchable(launches, count));

    if (batches->unavailable || kind == GRAPH_BATCH_QUEUED_KINDS ||
        !launch_set(find(batches, kind, launches), launches, stream))
        return 0;
    return lengths[kind];
}

bool graph_batches_launch_fenced(struct graph_batches *batches, CUstream stream,
                                 const struct launch launches[2])
{
    return !batches->unavailable && !has_refused(launches, 2) &&
           launch_set(find(batches, GRAPH_BATCH_FENCED, launches), launches, stream);
}

/* NULL = for all modules. */
static void drop(struct graph_batches *batches, const struct module *module)
{
    for (unsigned kind = 0; kind < GRAPH_BATCH_KINDS; kind++) {
        struct graph_batch *batch = batches->batch[kind];
        if (!batch || (module && !graph_batch_uses(batch, module)))
            continue;
        graph_batch_destroy(batch);
        batches->batch[kind] = NULL;
        capacity_give(batches->device, SLOTS);
    }
}

void graph_batches_forget_module(struct graph_batches *batches, const struct module *module)
{
    drop(batches, module);
}

void graph_batches_fini(struct graph_batches *batches)
{
    drop(batches, NULL);
}
