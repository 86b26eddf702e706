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
#define RESERVED 96u
#define UNCOUNTED 16u
#define LOW (RESERVED / 2)

struct capacity {
    atomic_int small; /* slots for what takes one */
    atomic_int large; /* slots that large graphs had */
};

/* Returns how many could be created at once. */
static unsigned fill_blocks(void)
{
    CUstream streams[RESERVED + UNCOUNTED];
    unsigned count = 0;

    while (count < RESERVED + UNCOUNTED &&
           driver.cuStreamCreateWithPriority(&streams[count], CU_STREAM_NON_BLOCKING, 0) ==
               CUDA_SUCCESS)
        count++;
    for (unsigned i = 0; i < count; i++)
        driver.cuStreamDestroy_v2(streams[i]);
    return count > UNCOUNTED ? count - UNCOUNTED : 0;
}

void capacity_prepare(void)
{
    fill_blocks();
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
bool capacity_take(const struct device *device, unsigned slots)
{
    atomic_int *left = slots_left(device, slots);
    int there = atomic_load_explicit(left, memory_order_relaxed);

    while (there >= (int)slots)
        if (atomic_compare_exchange_weak_explicit(left, &there, there - (int)slots,
                                                  memory_order_relaxed, memory_order_relaxed))
            return true;
    return false;
}

void capacity_give(const struct device *device, unsigned slots)
{
    atomic_fetch_add_explicit(slots_left(device, slots), (int)slots, memory_order_relaxed);
}

bool capacity_is_low(const struct device *device)
{
    return atomic_load_explicit(&device->capacity->small, memory_order_relaxed) < (int)LOW;
}

/* What others take meanwhile is subtracted as ever. */
void capacity_refill(const struct device *device)
{
    atomic_int *small = &device->capacity->small;
    int before = atomic_load_explicit(small, memory_order_relaxed);
    int more = (int)fill_blocks() - before;

    if (more > 0)
        atomic_fetch_add_explicit(small, more, memory_order_relaxed);
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
        if (use->slots == CAPACITY_STREAM)
            capacity_refill(device);
        exclusive_end(session, device, &use->call);
    } else if (result != CUDA_SUCCESS) {
        capacity_give(device, use->slots);
    }
}
