/* SPDX-License-Identifier: Apache-2.0 */
/* See chunk_file.h. A compressed file begins with the magic number of zstd. Where that does not
 * make a chunk smaller, the chunk is written as it is; so a file of full size is never compressed.
 */
#include "chunk_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zstd.h>

#include "chunk_hash.h"
#include "fd.h"

#define LEVEL 1

int chunk_buffers_init(struct chunk_buffers *buffers)
{
    buffers->packed_size = ZSTD_compressBound(CHUNK_SIZE);
    buffers->data = malloc(CHUNK_SIZE + sizeof(uint64_t));
    buffers->packed = malloc(buffers->packed_size);
    if (buffers->data && buffers->packed)
        return 0;
    chunk_buffers_fini(buffers);
    return -ENOMEM;
}

void chunk_buffers_fini(struct chunk_buffers *buffers)
{
    free(buffers->data);
    free(buffers->packed);
    *buffers = (struct chunk_buffers){.data = NULL};
}

/* The zeros that fill the last word are no contents, so the name tells the size. A size of whole
 * words, as servers write, changes nothing in it. */
void chunk_name(unsigned char *data, size_t size, char ret_name[CHUNK_NAME])
{
    size_t whole = (size + sizeof(uint64_t) - 1) & ~(sizeof(uint64_t) - 1);

    memset(data + size, 0, whole - size);
    struct chunk_hash hash = chunk_hash_of(data, whole);
    hash.word[0] ^= size % sizeof(uint64_t);
    snprintf(ret_name, CHUNK_NAME, "%016llx%016llx", (unsigned long long)hash.word[0],
             (unsigned long long)hash.word[1]);
}

int chunk_write(int fd, const unsigned char *data, size_t size, bool compress,
                struct chunk_buffers *buffers)
{
    size_t packed =
        compress ? ZSTD_compress(buffers->packed, buffers->packed_size, data, size, LEVEL) : size;

    if (ZSTD_isError(packed) || packed >= size)
        return write_all(fd, data, size);
    return write_all(fd, buffers->packed, packed);
}

static int read_packed(int fd, size_t packed, size_t size, struct chunk_buffers *buffers)
{
    int error = pread_all(fd, buffers->packed, packed, 0);

    if (error)
        return error;
    return ZSTD_decompress(buffers->data, CHUNK_SIZE, buffers->packed, packed) == size ? 0
                                                                                       : -EBADMSG;
}

static int read_contents(int fd, size_t size, struct chunk_buffers *buffers)
{
    struct stat status;

    if (fstat(fd, &status))
        return -errno;
    if (!S_ISREG(status.st_mode))
        return -EBADMSG;
    if ((size_t)status.st_size == size)
        return pread_all(fd, buffers->data, size, 0);
    return status.st_size < (off_t)size ? read_packed(fd, (size_t)status.st_size, size, buffers)
                                        : -EBADMSG;
}

int chunk_read(int fd, const char *name, size_t size, struct chunk_buffers *buffers)
{
    char seen[CHUNK_NAME];
    int error = read_contents(fd, size, buffers);

    if (error)
        return error;
    chunk_name(buffers->data, size, seen);
    return strcmp(seen, name) ? -EBADMSG : 0;
}
