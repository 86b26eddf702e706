/* SPDX-License-Identifier: Apache-2.0 */
/* See graph_batches.h. */
#include "graph_batches.h"

#include "capacity.h"
#include "function.h"
#include "loader.h"

/* How often a length must be wanted before its batch is created. */
#define WANTED_OFTEN 3u

/* Of capacity.h, for each batch. */
#define SLOTS 1u

/* Of the hash: an odd number whose bits look random. */
#define KEY_FACTOR UINT64_C(0x9e3779b97f4a7c15)

static const unsigned lengths[GRAPH_BATCH_KINDS] = {16, 8, 4, 2};

_Static_assert(GRAPH_BATCH_MAX == 16, "the longest of them");

static bool driver_has_graph_batches(void)
{
    return driver.cuGraphCreate && driver.cuGraphAddKernelNode_v2 &&
           driver.cuGraphInstantiateWithFlags && driver.cuGraphExecKernelNodeSetParams_v2 &&
           driver.cuGraphLaunch && driver.cuGraphExecDestroy && driver.cuGraphDestroy;
}

/* How many of them can go into one batch. The key of the first n is that of their functions, in
 * their order. Shapes and parameters are set where they differ. */
static unsigned read_keys(const struct launch *launches, unsigned count,
                          uint64_t ret_keys[GRAPH_BATCH_MAX + 1])
{
    unsigned length = 0;

    ret_keys[0] = 1;
    while (length < count && !launches[length].function->not_batchable) {
        ret_keys[length + 1] = ret_keys[length] * KEY_FACTOR + (uintptr_t)launches[length].function;
        length++;
    }
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

/* A batch that was kept. */
static void count_dropped(struct graph_batches *batches)
{
    capacity_give(batches->device, SLOTS);
    --*batches->kept_count;
}

static bool may_keep_more(const struct graph_batches *batches)
{
    return *batches->kept_count < GRAPH_BATCHES_KEPT_MAX &&
           capacity_take_surplus(batches->device, SLOTS);
}

/* One that has the functions of the sequence already, or gets them now for good. Apart, because a
 * queue of one kernel has no use for it. */
static __attribute__((noinline)) struct graph_batch *find_kept(struct graph_batches *batches,
                                                               const struct launch *launches,
                                                               unsigned length, uint64_t key)
{
    struct graph_batch *batch = kept_batches_find(&batches->kept, key);

    if (batch)
        return graph_batch_length(batch) == length ? batch : NULL;
    if (kept_batches_drop_unused(&batches->kept))
        count_dropped(batches);
    struct kept_batch *place = kept_batches_want(&batches->kept, key);

    if (!place || !may_keep_more(batches))
        return NULL;
    place->batch = create(batches, launches, length);
    *batches->kept_count += place->batch != NULL;
    if (!place->batch)
        place->seen = 0; /* so that it is not tried again at once */
    return place->batch;
}

/* The one for any launches. */
static struct graph_batch *find_general(struct graph_batches *batches, unsigned kind,
                                        const struct launch *launches, uint64_t key)
{
    batches->key[kind] = key;
    if (batches->batch[kind])
        return batches->batch[kind];
    if (++batches->wanted[kind] < WANTED_OFTEN || !capacity_take(batches->device, SLOTS))
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

/* Whether the batch for any launches is as good as one that is kept: it needs no other functions,
 * or its first launches come. */
static bool general_suits(const struct graph_batches *batches, unsigned kind, unsigned length,
                          uint64_t key)
{
    return lengths[kind] == length && (!batches->batch[kind] || batches->key[kind] == key);
}

static unsigned launch_set(struct graph_batch *batch, const struct launch *launches,
                           CUstream stream)
{
    return graph_batch_set(batch, launches) && graph_batch_launch(batch, stream)
               ? graph_batch_length(batch)
               : 0;
}

unsigned graph_batches_launch(struct graph_batches *batches, CUstream stream,
                              const struct launch *launches, unsigned count, bool is_whole)
{
    uint64_t keys[GRAPH_BATCH_MAX + 1];
    unsigned length = read_keys(launches, count, keys), kind = kind_for(length);
    bool general = kind < GRAPH_BATCH_QUEUED_KINDS;
    struct graph_batch *batch = NULL;

    if (batches->unavailable || length < 2)
        return 0;
    if (is_whole && batches->kept_count && length == count &&
        !(general && general_suits(batches, kind, length, keys[length])))
        batch = find_kept(batches, launches, length, keys[length]);
    if (!batch && general)
        batch = find_general(batches, kind, launches, keys[lengths[kind]]);
    return batch ? launch_set(batch, launches, stream) : 0;
}

bool graph_batches_launch_fenced(struct graph_batches *batches, CUstream stream,
                                 const struct launch launches[2])
{
    uint64_t keys[GRAPH_BATCH_MAX + 1];
    struct graph_batch *batch = NULL;

    if (batches->unavailable || read_keys(launches, 2, keys) < 2)
        return false;
    if (batches->kept_count && !general_suits(batches, GRAPH_BATCH_FENCED, 2, keys[2]))
        batch = find_kept(batches, launches, 2, keys[2]);
    if (!batch)
        batch = find_general(batches, GRAPH_BATCH_FENCED, launches, keys[2]);
    return batch && launch_set(batch, launches, stream);
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
    for (unsigned left = kept_batches_drop(&batches->kept, module); left; left--)
        count_dropped(batches);
}

void graph_batches_forget_module(struct graph_batches *batches, const struct module *module)
{
    drop(batches, module);
}

void graph_batches_fini(struct graph_batches *batches)
{
    drop(batches, NULL);
}
