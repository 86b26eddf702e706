/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The account is a lower bound of what the driver has: it is set by how many streams fitted in at
 * once. The few streams that the server itself creates later are not counted, so some more fit in
 * than the account says. A large graph finds its place only where another large one was, or in a
 * new block.
 */
#include "driver_room.h"

#include <stdatomic.h>
#include <stdlib.h>

/* Two blocks are full then, and a client takes one to five pieces for each of its streams. */
#define ROOM 96u
#define UNCOUNTED 16u
#define SHORT (ROOM / 2)

struct driver_room {
    atomic_int small; /* pieces for what takes one */
    atomic_int large; /* pieces that large graphs had */
};

/* Returns how many could be created at once. */
static unsigned fill(void)
{
    CUstream streams[ROOM + UNCOUNTED];
    unsigned count = 0;

    while (count < ROOM + UNCOUNTED &&
           driver.cuStreamCreateWithPriority(&streams[count], CU_STREAM_NON_BLOCKING, 0) ==
               CUDA_SUCCESS)
        count++;
    for (unsigned i = 0; i < count; i++)
        driver.cuStreamDestroy_v2(streams[i]);
    return count > UNCOUNTED ? count - UNCOUNTED : 0;
}

void driver_room_prepare(void)
{
    fill();
}

struct driver_room *driver_room_create(void)
{
    struct driver_room *room = calloc(1, sizeof(*room));

    if (room)
        atomic_init(&room->small, ROOM);
    return room;
}

void driver_room_destroy(struct driver_room *room)
{
    free(room);
}

static atomic_int *account(const struct device *device, unsigned pieces)
{
    return pieces > DRIVER_ROOM_STREAM ? &device->room->large : &device->room->small;
}

/* Numbers that order nothing: relaxed, here and below. */
bool driver_room_try(const struct device *device, unsigned pieces)
{
    atomic_int *left = account(device, pieces);
    int there = atomic_load_explicit(left, memory_order_relaxed);

    while (there >= (int)pieces)
        if (atomic_compare_exchange_weak_explicit(left, &there, there - (int)pieces,
                                                  memory_order_relaxed, memory_order_relaxed))
            return true;
    return false;
}

void driver_room_give(const struct device *device, unsigned pieces)
{
    atomic_fetch_add_explicit(account(device, pieces), (int)pieces, memory_order_relaxed);
}

bool driver_room_is_short(const struct device *device)
{
    return atomic_load_explicit(&device->room->small, memory_order_relaxed) < (int)SHORT;
}

/* What others take meanwhile is subtracted as ever. */
void driver_room_renew(const struct device *device)
{
    atomic_int *small = &device->room->small;
    int before = atomic_load_explicit(small, memory_order_relaxed);
    int more = (int)fill() - before;

    if (more > 0)
        atomic_fetch_add_explicit(small, more, memory_order_relaxed);
}

CUresult driver_room_begin(struct session *session, const struct device *device, unsigned pieces,
                           const char *what, struct driver_room_use *use)
{
    use->pieces = pieces;
    use->grows = !driver_room_try(device, pieces);
    return use->grows ? calm_begin(session, device, what, &use->calm) : CUDA_SUCCESS;
}

void driver_room_end(struct session *session, const struct device *device,
                     struct driver_room_use *use, CUresult result)
{
    if (use->grows) {
        if (use->pieces == DRIVER_ROOM_STREAM)
            driver_room_renew(device);
        calm_end(session, device, &use->calm);
    } else if (result != CUDA_SUCCESS) {
        driver_room_give(device, use->pieces);
    }
}
