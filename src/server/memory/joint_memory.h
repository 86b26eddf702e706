/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory of clients that have a limit together (joint_ledger.h). A client under such a limit
 * has a row of the ledger. The main thread gives it one and sets its keys. After that, the row has
 * what the client is charged with. The session's thread writes that behind each change.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "joint_ledger.h"

struct server;
struct session;

/* Of one server. */
struct joint_memory {
    _Atomic(struct joint_ledger *) ledger; /* NULL = there is none yet */
    pthread_mutex_t lock;                  /* one client of the server at a time asks for more */
};

void joint_memory_init(struct joint_memory *joint);

/* The main thread: from now on the rows of its clients are in this ledger. */
void joint_memory_use(struct server *server, struct joint_ledger *ledger);

/* The main thread: the client's limits have been set, or have changed. */
void joint_memory_follow(struct session *session);

/* The session has ended, and nothing is charged any more. */
void joint_memory_leave(struct session *session);

/* The session's thread: whether its joint limits leave `size` bytes more, which the row then has
 * already. False comes with an error in the log. */
bool joint_memory_reserve(struct session *session, unsigned device, uint64_t size);

/* The session's thread: what the client is charged with has changed. */
void joint_memory_note(struct session *session, unsigned device);

/* What its joint limits leave of a device: UINT64_MAX without any. */
uint64_t joint_memory_left(struct session *session, unsigned device);
