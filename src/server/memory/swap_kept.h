/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies in the pool of memory that is on its device again. When the memory leaves once more, only
 * the chunks that have changed are copied. A copy is given up as soon as the pool has no other room
 * for contents, the oldest first.
 *
 *     granule->swapped ── memory is back ──> granule->kept ── given up: it has no segments
 *            ^                                     |
 *            +────────── memory leaves ────────────+
 *
 * Functions are the session thread's unless a comment says otherwise.
 */
#pragma once

#include <pthread.h>

#include "list.h"
#include "session.h"

struct granule;

struct kept_copies {
    pthread_mutex_t lock; /* also of the segments of the copies in the list */
    struct list copies;   /* the oldest first */
};

/* An empty list; once for a server. */
void kept_copies_init(struct kept_copies *kept);

/* The memory is back, with the contents of the granule's copy: keeps that if it has hashes. */
void swap_keep(struct session *session, struct granule *granule);

/* The memory is about to leave: the copy that is kept becomes the granule's. Nothing where there is
 * none. */
void swap_keep_claim(struct session *session, struct granule *granule);

/* The granule ends. Nothing where no copy of it is kept. */
void swap_keep_end(struct session *session, struct granule *granule);

/* Takes bytes of the pool as swap_pool_take(), of copies that are kept before a chunk is made. */
CUresult swap_keep_take(struct session *session, const struct device *device, uint64_t size,
                        uint64_t *ret_address);
