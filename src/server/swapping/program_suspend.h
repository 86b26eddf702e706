/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suspended programs: an operator takes the memory of a program from its devices. The program
 * stands still at its ring until the operator has given it back. The memory of an evicted program
 * returns for its next command, too.
 *
 *     RUNS ── order ──> WANTED: the session's thread waits for an idle point of the client's
 *      ^                   |    streams, and runs no command meanwhile. It does so for a while,
 *      |                   |    and serves the client for as long in between, since its kernels
 *      |                   |    may wait for a later command.
 *      |                   v
 *      +── checkpoint ─────+   the memory stays, and a copy of it is written to a file
 *      |                   |
 *      |                   v
 *      |                 OUT: the memory is in the pool (swap.h), the thread waits; or it is on
 *      |                   |  the devices, LOCKED. Orders lead from one to the other.
 *      |                   |
 *      +── memory is back ─+── order, a command of an evicted client, or the client's end
 *                          |
 *                          +── the client was to be detached: its session ends at once
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "server_protocol.h"

struct server;
struct session;

/* A file for the contents, by two descriptors: the client gets the one that is only read.
 * -1 = they go into the pool. */
struct suspend_file {
    int writable, readable;
};

struct program_suspend {
    _Atomic uint32_t wanted;           /* 1 = RUNS no longer; the thread sleeps on it while OUT */
    atomic_uint order;                 /* its number in the server; written under its lock */
    atomic_int kind;                   /* enum server_suspend of the order */
    atomic_int followed;               /* of the order that it stands still by */
    atomic_bool evict;                 /* its next command has it return */
    atomic_bool for_others;            /* it leaves to make room: eviction.h */
    atomic_uint part_device;           /* of that, when `part_bytes` of a device suffice */
    atomic_uint_fast64_t part_bytes;   /* 0 = it leaves all devices */
    atomic_bool more;                  /* OUT: what has stayed shall leave, too */
    atomic_bool to_file;               /* the contents go to `file` */
    atomic_bool leaving;               /* it is on the way there */
    atomic_bool has_arrived;           /* all memory that it brought is here */
    atomic_uint_fast64_t precopied_at; /* when a file had most of the contents; 0 = never */
    atomic_bool out;          /* the memory is in the pool, or in the file; or it is locked */
    atomic_int result;        /* enum suspend_result of what the thread tried last */
    struct suspend_file file; /* under the server's lock; while `leaving` the session's thread's */
    /* The session's thread's. */
    struct adopted_order {
        unsigned order; /* as above */
        int kind;
        bool to_file;
    } adopted;                    /* what it follows: another order may have come meanwhile */
    uint64_t window_ns, next_try; /* how long it waits, and when next, by clock_ns() */
    uint64_t copied;              /* bytes, when it left the last time */
    bool is_precopied;            /* a pre-copy has been tried for this order */
    bool is_writing;              /* the file of a checkpoint is not complete yet */
    bool is_in_call;              /* the client waits for the answer of a command */
};

/* Closes both descriptors, and sets them to -1. */
void suspend_file_close(struct suspend_file *file);

/* Of a new session; and of one whose thread has ended. */
void program_suspend_init(struct program_suspend *suspend);
void program_suspend_fini(struct program_suspend *suspend);

/* The session's thread, between two commands and with no launch set aside: follows the order, and
 * returns when the client may go on. */
void program_suspend_follow(struct session *session);

/* The same in the middle of a command that has changed nothing yet, and that waits. */
void program_suspend_follow_in_call(struct session *session);

/* Any thread: whether an order wants it to stand still, or it does. */
bool program_suspend_is_wanted(const struct session *session);

/* Any thread: whether it stands still with its memory on the devices; and whether an order says to
 * do that, or no longer. */
bool program_suspend_is_locked(const struct session *session);
bool program_suspend_has_other_order(const struct session *session);

/* Any thread: whether it stands still with only a part of its memory away. Then whether more of
 * that shall leave, for others or because the client is suspended now. */
bool program_suspend_has_resident_memory(const struct session *session);
bool program_suspend_leaves_more(const struct session *session);

/* Any thread: 0, 1 when the client is suspended, 2 when it is locked. */
uint32_t program_suspend_state(const struct session *session);
