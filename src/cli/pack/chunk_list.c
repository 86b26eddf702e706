/* SPDX-License-Identifier: Apache-2.0 */
/* See chunk_list.h. */
#include "chunk_list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fd.h"
#include "hash.h"

#define NAME "chunk-list"
#define TEMPORARY "chunk-list.new"

int chunk_list_begin(struct chunk_list *list)
{
    *list = (struct chunk_list){.text = NULL};
    list->out = open_memstream(&list->text, &list->size);
    return list->out ? 0 : -ENOMEM;
}

void chunk_list_add(struct chunk_list *list, const char *name)
{
    fprintf(list->out, "%s\n", name);
}

void chunk_list_fini(struct chunk_list *list)
{
    if (list->out)
        fclose(list->out);
    free(list->text);
    *list = (struct chunk_list){.text = NULL};
}

static int finish(struct chunk_list *list)
{
    bool failed = ferror(list->out) || fflush(list->out);

    return failed || !list->text ? -ENOMEM : 0;
}

static int write_text(int directory, const struct chunk_list *list)
{
    _cleanup_fd_ int fd = fd_create_anew(directory, TEMPORARY);
    int error = fd < 0 ? -errno : write_all(fd, list->text, list->size);

    return error || !fsync(fd) ? error : -errno;
}

int chunk_list_write(struct chunk_list *list, int directory, uint64_t *ret_checksum)
{
    int error = finish(list);

    if (error)
        return error;
    error = fd_put_in_place(directory, TEMPORARY, NAME, write_text(directory, list));
    if (!error)
        *ret_checksum = hash_bytes(list->text, list->size);
    return error;
}

static int read_text(int fd, struct chunk_list *list)
{
    struct stat status;

    if (fstat(fd, &status))
        return -errno;
    if (!S_ISREG(status.st_mode))
        return -EBADMSG;
    list->size = (size_t)status.st_size;
    list->text = calloc(1, list->size + 1);
    return list->text ? pread_all(fd, list->text, list->size, 0) : -ENOMEM;
}

int chunk_list_read(int directory, uint64_t checksum, struct chunk_list *ret_list)
{
    _cleanup_fd_ int fd = openat(directory, NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    *ret_list = (struct chunk_list){.text = NULL};
    if (fd < 0)
        return -errno;
    int error = read_text(fd, ret_list);
    if (!error && hash_bytes(ret_list->text, ret_list->size) != checksum)
        error = -EBADMSG;
    if (error)
        chunk_list_fini(ret_list);
    return error;
}

int chunk_list_next(const char **next, char ret_name[CHUNK_NAME])
{
    size_t size = strcspn(*next, "\n");

    if (!**next)
        return -ENOENT;
    if (size >= CHUNK_NAME || (*next)[size] != '\n')
        return -EBADMSG;
    memcpy(ret_name, *next, size);
    ret_name[size] = '\0';
    *next += size + 1;
    return 0;
}
