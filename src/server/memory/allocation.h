/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Physical memory of clients (cuMemCreate), and its mappings at addresses that they have reserved.
 * It can leave its device and return as a granule does (swap.h): the handle stays the client's, and
 * so do the addresses.
 *
 * Functions are the session thread's.
 */
#pragma once

#include "list.h"
#include "memory.h"

/* Created memory is charged while it exists. Imported memory is charged while it is mapped, because
 * its size is known only then. */
struct allocation {
    struct granule memory; /* CREATED; its size is 0 when it is imported */
    struct list link;      /* of the session's */
    struct list mappings;
    bool released;    /* the handle is gone, but mappings are left */
    bool shared;      /* its client has exported it, or brought it from another process */
    bool has_scratch; /* the server has mapped it for itself, at memory.address */
};

struct mapping {
    struct list link;
    uint64_t address, size;
    struct allocation *allocation;
    uint64_t readers, writers; /* bit d: device d has access */
};

static inline struct allocation *allocation_of(struct granule *granule)
{
    return container_of(granule, struct allocation, memory);
}

/* Whether it has memory; else that is in the pool, or in a file. */
static inline bool allocation_is_there(const struct allocation *allocation)
{
    return !allocation->memory.swapped;
}

/* Whether a descriptor of a client may be passed to the driver as one of memory. */
bool allocation_could_be_memory(int fd);

/* Whether the client may have a descriptor of it, or has had one: see memory_may_export(). */
bool allocation_may_export(struct session *session, struct allocation *allocation);

/* Ends one that is neither held nor mapped any more. Its client may be on the way to another server
 * with its memory; the second function first takes the descriptor back. */
void allocation_end(struct session *session, struct allocation *allocation);
void allocation_settle(struct session *session, struct allocation *allocation);
