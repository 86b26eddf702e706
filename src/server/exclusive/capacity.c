/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The account is a lower bound of what the driver has: it is set by how many streams fitted in at
 * once. The few streams that the server itself creates later are not counted, so some more fit in
 * than the account says. A large graph finds its place only where another large one was, or in a
 * new block.
 */
#include "capacity.h"

#include <stdatomic.h>
#include <stdlib.h>

/* Two blocks are full then, and a client takes one to six slots for each of its streams. */
#define RESERVED 96
#define UNCOUNTED 16
#define LOW (RESERVED / 2)

/* Of slots that graphs have or may have. Many clients create their streams first. Their launches
 * want graphs when no idle point comes any more, because there is always work. So there is one for
 * each stream, and for twice as many streams where more is taken anyway. */
#define GRAPHS_MOST 256
#define STREAMS_AHEAD 2

struct capacity {
    atomic_int small;   /* slots for what takes one */
    atomic_int used;    /* slots that such things have, */
    atomic_int streams; /* and how many of them are streams of clients */
    atomic_int large;   /* slots that large graphs had */
};

/* Returns how many could be created at once, at most `slots`. */
static int fill_blocks(int slots)
{
    CUstream streams[GRAPHS_MOST + UNCOUNTED];
    int count = 0;

    while (count < slots + UNCOUNTED &&
           driver.cuStreamCreateWithPriority(&streams[count], CU_STREAM_NON_BLOCKING, 0) ==
               CUDA_SUCCESS)
        count++;
    for (int i = 0; i < count; i++)
        driver.cuStreamDestroy_v2(streams[i]);
    return count > UNCOUNTED ? count - UNCOUNTED : 0;
}

void capacity_prepare(void)
{
    fill_blocks(RESERVED);
}

struct capacity *capacity_create(void)
{
    struct capacity *capacity = calloc(1, sizeof(*capacity));

    if (capacity)
        atomic_init(&capacity->small, RESERVED);
    return capacity;
}

void capacity_destroy(struct capacity *capacity)
{
    free(capacity);
}

static atomic_int *slots_left(const struct device *device, unsigned slots)
{
    return slots > CAPACITY_STREAM ? &device->capacity->large : &device->capacity->small;
}

/* Numbers that order nothing: relaxed, here and below. */
static void note_use(const struct device *device, unsigned slots, int more)
{
    if (slots <= CAPACITY_STREAM)
        atomic_fetch_add_explicit(&device->capacity->used, more, memory_order_relaxed);
}

static bool take(const struct device *device, unsigned slots)
{
    atomic_int *left = slots_left(device, slots);
    int there = atomic_load_explicit(left, memory_order_relaxed);

    while (there >= (int)slots)
        if (atomic_compare_exchange_weak_explicit(left, &there, there - (int)slots,
                                                  memory_order_relaxed, memory_order_relaxed))
            return true;
    return false;
}

bool capacity_take(const struct device *device, unsigned slots)
{
    if (!take(device, slots))
        return false;
    note_use(device, slots, 1);
    return true;
}

void capacity_give(const struct device *device, unsigned slots)
{
    note_use(device, slots, -1);
    atomic_fetch_add_explicit(slots_left(device, slots), (int)slots, memory_order_relaxed);
}

void capacity_note_stream(const struct device *device, int more)
{
    atomic_fetch_add_explicit(&device->capacity->streams, more, memory_order_relaxed);
}

static int smaller_of(int a, int b)
{
    return a < b ? a : b;
}

static int larger_of(int a, int b)
{
    return a > b ? a : b;
}

struct use {
    int left, streams, graphs;
};

static struct use look_at(const struct device *device)
{
    const struct capacity *capacity = device->capacity;
    int used = atomic_load_explicit(&capacity->used, memory_order_relaxed);
    struct use use = {.left = atomic_load_explicit(&capacity->small, memory_order_relaxed),
                      .streams = atomic_load_explicit(&capacity->streams, memory_order_relaxed)};

    use.graphs = larger_of(used - use.streams, 0);
    return use;
}

bool capacity_is_scarce(const struct device *device)
{
    return atomic_load_explicit(&device->capacity->small, memory_order_relaxed) < LOW;
}

bool capacity_is_low(const struct device *device)
{
    struct use use = look_at(device);

    return use.left < larger_of(LOW, smaller_of(use.streams, GRAPHS_MOST) - use.graphs);
}

/* What others take meanwhile is subtracted as ever. */
void capacity_refill(const struct device *device)
{
    struct use use = look_at(device);
    int for_graphs = smaller_of(STREAMS_AHEAD * use.streams, GRAPHS_MOST) - use.graphs;
    int more = fill_blocks(larger_of(RESERVED, for_graphs)) - use.left;

    if (more > 0)
        atomic_fetch_add_explicit(&device->capacity->small, more, memory_order_relaxed);
}

CUresult capacity_begin(struct session *session, const struct device *device, unsigned slots,
                        const char *what, struct capacity_use *use)
{
    use->slots = slots;
    use->grows = !capacity_take(device, slots);
    return use->grows ? exclusive_begin(session, device, what, &use->call) : CUDA_SUCCESS;
}

void capacity_end(struct session *session, const struct device *device, struct capacity_use *use,
                  CUresult result)
{
    if (use->grows) {
        if (result == CUDA_SUCCESS)
            note_use(device, use->slots, 1);
        if (use->slots == CAPACITY_STREAM && capacity_is_low(device))
            capacity_refill(device);
        exclusive_end(session, device, &use->call);
    } else if (result != CUDA_SUCCESS) {
        capacity_give(device, use->slots);
    }
}
