/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory of chunks that checkpoints share. Each checkpoint has hard links of its own, so that
 * it is complete without the store. A chunk takes space until the last of them is deleted:
 *
 *     STORE/3f/3f1c...          a second name of each chunk, by which others find it
 *     CHECKPOINT/chunks/3f1c...
 *
 * A chunk is shared when all bytes are equal. A file in the store whose contents are not those of
 * its name, or that another user could write, is replaced. Errors are -errno.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "chunk_file.h"

struct chunk_store {
    const char *path;
    int fd;
    bool compress; /* new chunks */
    struct chunk_buffers buffers;
    uint64_t added, shared; /* bytes of contents so far */
    uint64_t damaged;       /* files that were replaced */
};

/* Makes the directory if need be. -EPERM: it is another user's, or others may write to it. */
int chunk_store_open(struct chunk_store *store, const char *path, bool compress);
void chunk_store_close(struct chunk_store *store);

/* Links a chunk with these contents into a directory of the same file system (-EXDEV). The buffer
 * is as chunk_name() needs it. -EEXIST: the store has other contents with the same hash. */
int chunk_store_put(struct chunk_store *store, int directory, unsigned char *data, size_t size,
                    char ret_name[CHUNK_NAME]);

/* Deletes the chunks that no checkpoint has. */
int chunk_store_clean(struct chunk_store *store, uint64_t *ret_files, uint64_t *ret_bytes);
