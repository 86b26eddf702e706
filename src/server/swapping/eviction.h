/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory for one program at the expense of others. Programs of a server whose limits say
 * `oversubscribe` share its devices in this way:
 *
 *     a new allocation, or the return of an evicted program, finds too little memory
 *         ──> it waits in a line ──> the first of the line orders others to leave (memory_stay.h)
 *         ──> their threads evict them (program_suspend.h) ──> the first one tries again
 *
 * For a new allocation a program leaves as a whole, because more allocations are likely to follow.
 * For a return it leaves with what is missing, and both move at a time (swap_slices.h). What has
 * stayed of a program that stands still is the first to leave when more is missing.
 *
 * A thread that waits here can itself be ordered to leave, so that two programs that both want more
 * do not wait for each other.
 */
#pragma once

#include "list.h"
#include "memory.h"
#include "memory_stay.h"

/* Of one server, under its lock. */
struct server_eviction {
    struct list line; /* struct room_wait, the next one first */
    struct stay_pace pace;
    atomic_uint_fast64_t freed; /* grows when a client has left its devices */
};

/* Of one client, under the server's lock unless a comment says otherwise. */
struct session_eviction {
    struct memory_stay stay;
    uint64_t idle_since;  /* clock_ns(); 0 = it has work: the watchdog's */
    uint32_t ordered_for; /* the client that it shall leave for; 0 = none */
    uint64_t ordered;     /* so many bytes; UINT64_MAX = all */
    atomic_uint_fast64_t resident[SERVER_MAX_DEVICES]; /* bytes here; any thread may read */
    atomic_uint in_line; /* how often: it waits for memory; any thread may read */
    atomic_int obstacle; /* enum suspend_result: why it did not leave when asked; the same */
    uint64_t obstacle_until;
    unsigned returns; /* how often its memory has come back: its thread's */
};

void server_eviction_init(struct server *server);
void session_eviction_init(struct session *session);

/* The session's thread, as memory_room_maker: asks until there is room, as long as the quota
 * room-seconds says. */
CUresult eviction_make_room(struct session *session, const struct device *device, uint64_t size,
                            memory_attempt *attempt, void *context);

/* The session's thread, of an evicted client with a command: has the memory return, as swap_in().
 * SUSPEND_NO_MEMORY when the client shall stay away, or takes no part any more. */
int eviction_return(struct session *session);

/* Any thread, of a client that stands still: whether some of its memory has not left. */
bool eviction_has_resident_memory(const struct session *session);

/* Whether the client's memory may make room for others, and others' for it. */
bool eviction_takes_part(const struct session *session);

/* The session's thread: its memory has left, or has come back, for whatever reason. */
void eviction_note_leaving(struct session *session, uint64_t bytes);
void eviction_note_return(struct session *session, uint64_t bytes);

/* The session's thread: how an order for another client has ended. */
void eviction_has_left(struct session *session);
void eviction_has_refused(struct session *session, int result);

/* The watchdog: which clients are idle. */
void eviction_watch(struct server *server);
