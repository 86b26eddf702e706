/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client may use, in force now. The daemon may change the memory limits, the share of the
 * multiprocessors, the priority and the class while the client works. Its static partition, the
 * totals that it sees, its right to borrow and its soft limits never change.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "server_protocol.h"

/* What the session's thread has to follow before its next command. */
enum session_change {
    CHANGED_LIMITS = 1,   /* the share and the priority; a trace begins in this way, too */
    CHANGED_SERVICE = 2,  /* the pool serves the session from now on: worker_pool.h */
    CHANGED_LENDING = 4,  /* where its streams run, or it works again: lending.h */
    CHANGED_LEAVE = 8,    /* the client asks to move to another server: session_leave.h */
    CHANGED_SUSPEND = 16, /* the memory shall leave the devices: program_suspend.h */
};

struct session_limits {
    atomic_uint_fast64_t memory[SERVER_MAX_DEVICES]; /* bytes by device; 0 = no limit */
    atomic_uint_fast64_t joint[JOINT_LIMITS]
                              [SERVER_MAX_DEVICES]; /* the same, together with others */
    atomic_uint_fast64_t joint_key[JOINT_LIMITS];   /* of struct joint_limit */
    atomic_uint sm_centipercent;                    /* 1..10000; 10000 = no limit */
    atomic_uint priority;                           /* 0 normal, 1 below normal */
    atomic_uint class;                              /* enum client_class */
    atomic_bool oversubscribe;                      /* eviction.h */
    atomic_uint evict_after;                        /* seconds; 0 = never: rest_eviction.h */
    atomic_uint changed;                            /* enum session_change, one bit each */
    /* Written before the session's thread starts; as in struct server_limits. */
    uint32_t fixed_device, fixed_first, fixed_count, fixed_only;
    bool totals_show_limit, may_borrow;
    uint32_t borrow_chunk_sms;
    uint64_t borrow_chunks;
    uint64_t memory_soft[SERVER_MAX_DEVICES]; /* bytes by device; 0 = none */
};

/* Before the session's thread starts: takes over all of them. */
void session_limits_init(struct session_limits *limits, const struct server_limits *from);

/* From any thread: takes over what may change. The session's thread follows when it sees
 * `changed`. */
void session_limits_set(struct session_limits *limits, const struct server_limits *from);

/* From any thread: what is in force. */
struct server_limits session_limits_get(const struct session_limits *limits);

/* From any thread: the least of the limits that bound the client's memory of a device, joint ones
 * included; 0 = none. */
uint64_t session_limits_tightest(const struct session_limits *limits, unsigned device);

/* From any thread: the memory of a device of `total` bytes, as its client is to see it. */
uint64_t session_limits_shown_total(const struct session_limits *limits, unsigned device,
                                    uint64_t total);
