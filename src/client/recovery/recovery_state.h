/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the three kinds of moves share. A client moves after the end of a server
 * (client_recovery.h), to another lane as it wishes (wished_move.h), and by an order of the daemon
 * (planned_move.h).
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "move_obstacle.h"
#include "recovery_rules.h"
#include "recovery_snapshot.h"

struct replay_variables;

/* How long the client waits until other threads are outside the library. The first is for a move
 * that it needs, the second for one that it can do without. */
#define CLOSE_TIMEOUT_NS (2 * NS_PER_SEC)
#define CLOSE_BRIEFLY_NS (5 * NS_PER_MS)

/* In one move, as servers end one after the other. */
#define MOVES_MAX 10

/* The first timeout of planned moves, and how often a thread looks for answers to a wish. */
#define LEAVE_TIMEOUT_NS NS_PER_SEC
#define LEAVE_POLL_NS (500 * NS_PER_US)

/* Written under the lock, or by the mover. */
struct recovery {
    pthread_mutex_t lock;
    pthread_t mover;    /* valid while moving */
    atomic_bool moving; /* atomic */
    bool off;
    bool hopeless;
    atomic_uint_fast64_t next_wish; /* clock_ns(), like the next */
    uint64_t next_leave;
    enum move_obstacle told; /* as it was logged last */
    uint64_t leave_timeout_ns;
    uint64_t unheard; /* the connection by which a file of variables may come too late; or 0 */
    struct recovery_asked asked;
};

extern struct recovery recovery;

/* Whether the client's channel was broken on purpose, so that it must not move. */
bool recovery_is_cut_off(void);

/* Around a move, with the lock and after call_close(). The thread is the mover meanwhile: it waits
 * for answers, too, and must not wait for itself. */
void recovery_begin_move(void);
void recovery_end_move(void);
bool recovery_is_mover(void);

/* Attaches to another server. False, after an entry in the log, where none takes the client. */
bool recovery_attach(const struct recovery_snapshot *snapshot);

/* Makes memory and objects again with the server that the client has attached to, and sends what
 * was not read. If that server ends, it tries others. `variables` may be NULL. */
CUresult recovery_settle(const struct recovery_snapshot *snapshot,
                         const struct replay_variables *variables);

/* The client cannot go on, and each call reports `error`. It leaves the server that it may have
 * come to, and keeps no memory of devices from others. By the mover. */
void recovery_give_up(CUresult error);

/* Moves the client if its server was found to have ended, without the lock. */
void recovery_follow_end(void);
