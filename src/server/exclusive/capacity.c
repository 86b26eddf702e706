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

/* A client takes one to six slots for each of its streams. Two blocks have the least reserve.
 * Twelve have the largest, and a block takes 24 MiB. */
#define RESERVE_LEAST 96
#define RESERVE_MOST 512
#define UNCOUNTED 16

struct capacity {
    atomic_int small; /* slots that are left for what takes one */
    atomic_int used;  /* slots that such things have */
    atomic_int large; /* slots that large graphs had */
};

/* How many slots had better be left: streams of clients get their graphs later. */
static int reserve_of(const struct capacity *capacity)
{
    int wanted = 2 * atomic_load_explicit(&capacity->used, memory_order_relaxed);

    if (wanted < RESERVE_LEAST)
        return RESERVE_LEAST;
    return wanted < RESERVE_MOST ? wanted : RESERVE_MOST;
}

/* Returns how many could be created at once, at most `slots`. */
static int fill_blocks(int slots)
{
    CUstream streams[RESERVE_MOST + UNCOUNTED];
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
    fill_blocks(RESERVE_LEAST);
}

struct capacity *capacity_create(void)
{
    struct capacity *capacity = calloc(1, sizeof(*capacity));

    if (capacity)
        atomic_init(&capacity->small, RESERVE_LEAST);
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

static void note_use(const struct device *device, unsigned slots, int more)
{
    if (slots == CAPACITY_STREAM)
        atomic_fetch_add_explicit(&device->capacity->used, more, memory_order_relaxed);
}

/* Numbers that order nothing: relaxed, here and below. */
bool capacity_take(const struct device *device, unsigned slots)
{
    atomic_int *left = slots_left(device, slots);
    int there = atomic_load_explicit(left, memory_order_relaxed);

    while (there >= (int)slots) {
        if (atomic_compare_exchange_weak_explicit(left, &there, there - (int)slots,
                                                  memory_order_relaxed, memory_order_relaxed)) {
            note_use(device, slots, 1);
            return true;
        }
    }
    return false;
}

void capacity_give(const struct device *device, unsigned slots)
{
    note_use(device, slots, -1);
    atomic_fetch_add_explicit(slots_left(device, slots), (int)slots, memory_order_relaxed);
}

bool capacity_is_low(const struct device *device)
{
    const struct capacity *capacity = device->capacity;

    return atomic_load_explicit(&capacity->small, memory_order_relaxed) < reserve_of(capacity) / 2;
}

/* What others take meanwhile is subtracted as ever. */
void capacity_refill(const struct device *device)
{
    atomic_int *small = &device->capacity->small;
    int before = atomic_load_explicit(small, memory_order_relaxed);
    int more = fill_blocks(reserve_of(device->capacity)) - before;

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
        if (result == CUDA_SUCCESS)
            note_use(device, use->slots, 1);
        if (use->slots == CAPACITY_STREAM)
            capacity_refill(device);
        exclusive_end(session, device, &use->call);
    } else if (result != CUDA_SUCCESS) {
        capacity_give(device, use->slots);
    }
}
