/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file with one chunk of contents, as it is or compressed. Its name is the hash of the contents,
 * so that accidental damage shows. The hash proves nothing: who shares a chunk compares its bytes.
 *
 * Errors are -errno; -EBADMSG: the contents are not those of the name.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define CHUNK_SIZE ((size_t)2 << 20)

/* 32 hexadecimal digits. */
#define CHUNK_NAME 33

/* Buffers that functions use again. */
struct chunk_buffers {
    unsigned char *data;   /* CHUNK_SIZE, for the contents of a file */
    unsigned char *packed; /* for compressed contents */
    size_t packed_size;
};

/* 0 or -ENOMEM. */
int chunk_buffers_init(struct chunk_buffers *buffers);
void chunk_buffers_fini(struct chunk_buffers *buffers);

/* Of at most CHUNK_SIZE bytes. The buffer behind them is aligned, and has place for 7 zeros. */
void chunk_name(unsigned char *data, size_t size, char ret_name[CHUNK_NAME]);

/* Writes contents to an empty file. */
int chunk_write(int fd, const unsigned char *data, size_t size, bool compress,
                struct chunk_buffers *buffers);

/* Reads what should be `size` bytes of that name into buffers->data. */
int chunk_read(int fd, const char *name, size_t size, struct chunk_buffers *buffers);
