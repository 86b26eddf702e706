/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contents of a granule that has no memory of its device: in segments of the pool (swap_pool.h)
 * or in a file (swap_file.h).
 *
 * Functions are the session thread's. swap_forget of swap.h ends a copy.
 */
#pragma once

#include "chunk_hash.h"
#include "list.h"
#include "session.h"
#include "swap_file.h"

struct granule;
struct swap_pool;

struct swap_copy {
    int fd; /* -1 = in the pool */
    struct swap_entry entry;
    uint64_t size;             /* of the granule */
    struct chunk_hash *hashes; /* of the chunks in the pool; NULL = not known */
    struct list link;          /* of a copy that is kept: swap_kept.h */
    unsigned count;
    uint64_t segments[];
};

/* The pool of the session's server. */
struct swap_pool *swap_pool_of(const struct session *session);

/* The bytes in a segment of the copy. */
uint64_t swap_segment_size(const struct swap_copy *copy, unsigned segment);

/* Gives a granule an empty copy with places for `segments`. */
CUresult swap_copy_begin(struct session *session, struct granule *granule, unsigned segments);

/* Gives its segments back. The second ends it, too. */
void swap_copy_empty(struct swap_pool *pool, struct swap_copy *copy);
void swap_copy_end(struct swap_pool *pool, struct swap_copy *copy);

/* The copy keeps a duplicate of the file's descriptor. */
CUresult swap_copy_give_file(struct swap_copy *copy, int fd);

/* Of granules with memory of their device, or that have had some. These are those without a copy,
 * those with one, and those that have the copy alone. */
enum swap_place { SWAP_HERE, SWAP_MOVING, SWAP_AWAY };

typedef CUresult granule_action(struct session *session, struct granule *granule, void *context);

/* Calls `act` until it fails, in the context of each granule's device, for those that are at the
 * place. Memory of cuMemCreate is among them. */
CUresult swap_for_each(struct session *session, enum swap_place place, granule_action *act,
                       void *context);
