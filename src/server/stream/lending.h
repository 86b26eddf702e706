/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lending of multiprocessors: a client whose share of a device has a limit may run on those of
 * clients that rest. A client rests when it has had neither work nor commands for a round of the
 * watchdog. It works again from its next command on. Before the server runs that one, it tells all
 * borrowers to return to their own parts; they do so before their own next command. Their work in
 * the lent part goes on there, at the lowest priority. Blocks of the owner's kernels start first,
 * and wait for running blocks only.
 *
 * Both changes are a bit in the word that a session's loop checks anyway (session_limits.h), so a
 * launch costs nothing more.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "partition.h"
#include "server_protocol.h"

struct server;
struct session;

/* Of a session, under the server's lock. */
struct lending {
    bool borrows, rests;
    uint32_t taken;  /* bytes of commands at the last look */
    uint64_t wanted; /* bit d: its streams of device d are to run in the lent part */
    struct {
        struct group_set own, more; /* what it has, and what it may borrow besides */
    } device[SERVER_MAX_DEVICES];
};

/* The session's thread: its shares of the devices are taken, or have changed. It works from now
 * on. */
void lending_begin(struct session *session);

/* The session's thread: the shares are about to end. */
void lending_end(struct session *session);

/* The session's thread, when it has seen CHANGED_LENDING. */
void lending_follow(struct session *session);

/* The watchdog's, in each of its rounds: finds who rests, and lets others borrow. */
void lending_watch(struct server *server);
