/* SPDX-License-Identifier: Apache-2.0 */
/* See graph_batches.h. */
#include "graph_batches.h"

#include <stdlib.h>

#include "capacity.h"
#include "function.h"
#include "kept_batches.h"
#include "loader.h"

/* Of capacity.h, for each batch. */
#define SLOTS 1u

/* Of the hash: an odd number whose bits look random. */
#define KEY_FACTOR UINT64_C(0x9e3779b97f4a7c15)

/* Of a sequence that is kept. */
#define KEPT_LENGTH_MIN 2u

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

/* Shapes and parameters are set where they differ, so only the functions count. */
static uint64_t key_of(const struct launch *launches, unsigned count)
{
    uint64_t key = 1;

    for (unsigned i = 0; i < count; i++)
        key = key * KEY_FACTOR + (uintptr_t)launches[i].function;
    return key;
}

/* NULL when the sequence has not come often enough, or when there is no capacity. */
static struct graph_batch *create_kept(struct graph_batches *batches, const struct launch *launches,
                                       unsigned count, uint64_t key)
{
    if (kept_batches_drop_unused(batches->kept))
        capacity_give(batches->device, SLOTS);
    struct kept_batch *place = kept_batches_want(batches->kept, key);

    if (!place || capacity_is_scarce(batches->device) || !capacity_take(batches->device, SLOTS))
        return NULL;
    place->batch = create(batches, launches, count);
    if (!place->batch)
        place->seen = 0; /* so that it is not tried again at once */
    return place->batch;
}

static struct graph_batch *find_kept(struct graph_batches *batches, const struct launch *launches,
                                     unsigned count)
{
    if (!batches->kept)
        batches->kept = calloc(1, sizeof(*batches->kept));
    if (!batches->kept)
        return NULL;
    uint64_t key = key_of(launches, count);
    struct graph_batch *batch = kept_batches_find(batches->kept, key);

    return batch ? batch : create_kept(batches, launches, count, key);
}

bool graph_batches_launch_kept(struct graph_batches *batches, CUstream stream,
                               const struct launch *launches, unsigned count)
{
    if (batches->unavailable || count < KEPT_LENGTH_MIN || batchable(launches, count) != count)
        return false;
    struct graph_batch *batch = find_kept(batches, launches, count);

    return batch && graph_batch_length(batch) == count && launch_set(batch, launches, stream);
}

bool graph_batches_launch_fenced(struct graph_batches *batches, CUstream stream,
                                 const struct launch launches[2])
{
    return !batches->unavailable && !has_refused(launches, 2) &&
           launch_set(find(batches, GRAPH_BATCH_FENCED, launches), launches, stream);
}

/* NULL = for all modules. */
static void drop_kept(struct graph_batches *batches, const struct module *module)
{
    unsigned dropped = batches->kept ? kept_batches_drop(batches->kept, module) : 0;

    while (dropped--)
        capacity_give(batches->device, SLOTS);
}

/* Likewise. */
static void drop(struct graph_batches *batches, const struct module *module)
{
    drop_kept(batches, module);
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
    free(batches->kept);
    batches->kept = NULL;
}
