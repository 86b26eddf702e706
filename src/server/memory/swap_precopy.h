/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a client's contents to a file while the client runs, so that it stands still only for what
 * it changes meanwhile. Each chunk in the file has the hash of what was written. When the client
 * stands still, its device hashes all chunks, and swap_save() writes those with another hash.
 *
 * The session's thread goes on with commands. Before it takes memory from an address, it calls
 * swap_precopy_forget(). Functions are the session thread's.
 */
#pragma once

#include "chunk_hash.h"
#include "session.h"

struct granule;

/* What the file has of a granule. */
struct precopied {
    uint64_t offset;                   /* in the file */
    const uint64_t *hashes;            /* of the chunks in the file: swap_file.h */
    const struct chunk_hash *versions; /* the same by chunk_hash.h */
};

/* Begins, with a duplicate of the file's descriptor. False where it cannot, as without hashes. */
bool swap_precopy_begin(struct session *session, int fd);

/* Whether one was begun and goes on; it ends after an error, too. */
bool swap_precopy_runs(const struct session *session);

/* Waits for a chunk at most. Nothing where none was begun. */
void swap_precopy_end(struct session *session);

/* The granule's memory is about to be unmapped. */
void swap_precopy_forget(struct session *session, const struct granule *granule);

/* Of one that has ended: the error of the file, or 0 when that has contents. -ENOENT where none was
 * begun for this file, or it is of no use. *ret_offset is the end of the contents, and *ret_entries
 * how many entries have a place before them. */
int swap_precopy_result(const struct session *session, int fd, uint64_t *ret_offset,
                        unsigned *ret_entries);

/* False when the file has nothing of that granule. */
bool swap_precopy_find(const struct session *session, uint64_t address, uint64_t size,
                       struct precopied *ret_precopied);
