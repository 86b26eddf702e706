/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file with the contents of a client's device memory. It outlives the server that wrote it,
 * because the client has a descriptor of it. A later server reads it again:
 *
 *     head: magic, number of entries, hash of the entries
 *     entries: address, size, where the contents lie, their hash, flags; by ascending address
 *     contents: in chunks; those that are all zero are holes
 *
 * The head is written last. The client might write to the file, so what is read is checked.
 * The functions hold no state, and any thread may call them. Errors are -errno; -EBADMSG: the file
 * is not complete, or not as it was written.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SWAP_FILE_CHUNK (2ull << 20)

/* The chunks that so many bytes take; the last may be shorter. */
static inline uint64_t swap_file_chunks(uint64_t size)
{
    return (size + SWAP_FILE_CHUNK - 1) / SWAP_FILE_CHUNK;
}

struct swap_entry {
    uint64_t address; /* or the client's handle of memory without one */
    uint64_t size, offset, hash;
    uint64_t flags; /* SWAP_RETURNS */
};

/* The client has left its server, and its memory returns for its first command in another. */
#define SWAP_RETURNS (1u << 0)

/* Whether it is a file of this machine: another one's, or a program's (FUSE), could block this
 * process forever. 0 or -EOPNOTSUPP. */
int swap_file_check(int fd);

/* Empties the file, and gives it its size for that many bytes of contents. Returns where they begin
 * behind so many entries. */
int swap_file_begin(int fd, unsigned entries, uint64_t contents, uint64_t *ret_offset);

/* Writes a chunk of contents at that place of the file, and returns its hash. Threads may write
 * different chunks side by side. */
int swap_file_write(int fd, uint64_t offset, const void *data, size_t size, uint64_t *ret_hash);

/* The same over other contents. */
int swap_file_rewrite(int fd, uint64_t offset, const void *data, size_t size, uint64_t *ret_hash);

/* Makes the file larger for more contents behind it. */
int swap_file_extend(int fd, uint64_t size);

/* Waits until what has been written is on its disk. */
int swap_file_sync(int fd);

/* An entry's hash, of those of its chunks. All but the last chunk have their full size. */
uint64_t swap_file_hash(const uint64_t *hashes, uint64_t count);

/* Makes the file complete, and waits until it is on its disk. */
int swap_file_complete(int fd, const struct swap_entry *entries, unsigned count);

/* -ENOENT where there is no such entry. */
int swap_file_find(int fd, uint64_t address, uint64_t size, struct swap_entry *ret_entry);

/* Reads a chunk and returns its hash. */
int swap_file_read(int fd, uint64_t offset, void *data, size_t size, uint64_t *ret_hash);
