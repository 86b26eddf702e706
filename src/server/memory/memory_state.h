/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory subsystem's state of the server and of a session. Only its own files include this.
 */
#pragma once

#include "chunk_hasher.h"
#include "device_copy.h"
#include "joint_memory.h"
#include "memory.h"
#include "page_lock.h"
#include "reserve_area.h"
#include "server.h"
#include "session.h"
#include "swap_kept.h"
#include "swap_pool.h"
#include "swap_staging.h"
#include "window.h"

#define SESSION_GRANULES_MAX (1u << 16)
#define SESSION_ALLOCATIONS_MAX (1u << 16)
#define SESSION_RESERVATIONS_MAX 4096u

/* Snapshots of one device so far (swap_snapshot.h). */
struct snapshot_count {
    atomic_uint_fast64_t made, ended;
};

struct server_memory {
    struct windows windows;
    struct reserve_area reserve_area;
    struct page_locker page_locker;
    struct swap_pool swap_pool;
    struct kept_copies kept_copies;
    struct chunk_hasher hasher;
    struct swap_staging swap_staging;
    struct snapshot_count snapshots[SERVER_MAX_DEVICES];
    memory_reclaimer *reclaimers[MEMORY_RECLAIMERS];
    unsigned reclaimer_count;
    memory_guard *is_awaited;
    memory_room_maker *make_room;
    struct joint_memory joint;
    pthread_mutex_t
        limits_lock; /* context_limit.c: held from the check for clients to the setting */
};

/* A client's memory on one device. Status rows read the first three. */
struct device_usage {
    atomic_uint_fast64_t used, peak;    /* bytes */
    atomic_uint_fast64_t swapped;       /* bytes of its memory in the swap pool */
    uint64_t given;                     /* bytes of memory whose descriptor the client has had */
    uint64_t raised[DEVICE_LIMITS_MAX]; /* limits of the context that it is charged for; or 0 */
    bool is_over_soft;                  /* it has been, and the log says so */
    uint64_t reached_by; /* bit d: device d may access the client's memory of this one */
};

struct session_memory {
    struct device_usage device[SERVER_MAX_DEVICES];
    atomic_uint_fast64_t refused;      /* how often the client's limit refused memory */
    _Atomic(struct joint_row *) joint; /* joint_memory.h; NULL = no joint limit holds for it */
    struct ranges extents;             /* struct granule: all that the client may copy to or from */
    uint64_t generation;               /* grows when a range ceases to be the client's */
    uint64_t exchanges;                /* grows when other memory comes to an address */
    struct ranges reservations; /* addresses that the client has reserved, each in a holding */
    struct ranges holdings;     /* addresses that no other client gets before this one has gone */
    uint64_t held_bytes;
    struct ranges mappings;       /* struct mapping, in reservations: vmm.c */
    struct list created;          /* struct allocation */
    unsigned allocations;         /* of them */
    struct granule spare_host;    /* memory of the host that exchanges have left; size 0 = none */
    struct swap_precopy *precopy; /* NULL = there is none */
    struct swap_writing *writing; /* of a checkpoint; NULL = there is none */
    struct list imports;          /* struct ipc_import: granules of other clients */
    struct device_copies copies;  /* while the client moves to another device */

    /* Of each device, when the client last waited for some: swap_snapshot.h. */
    uint64_t snapshots_ended[SERVER_MAX_DEVICES];
};
