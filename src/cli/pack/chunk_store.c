/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See chunk_store.h. A file gets its name when it is whole. Another process may make the same
 * chunk, or clean the store, at any time: then the steps for a chunk begin again.
 */
#include "chunk_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fd.h"

#define PLACE (CHUNK_NAME + 3) /* "3f/3f1c..." */

/* Who may write to a chunk can change checkpoints that have it. */
static bool is_ours_alone(const struct stat *status)
{
    return status->st_uid == geteuid() && !(status->st_mode & (S_IWGRP | S_IWOTH));
}

static int open_directory(const char *path, int *ret_fd)
{
    struct stat status;

    *ret_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*ret_fd < 0 || fstat(*ret_fd, &status))
        return -errno;
    return is_ours_alone(&status) ? 0 : -EPERM;
}

int chunk_store_open(struct chunk_store *store, const char *path, bool compress)
{
    *store = (struct chunk_store){.path = path, .fd = -1, .compress = compress};
    if (mkdir(path, 0700) && errno != EEXIST)
        return -errno;
    int error = open_directory(path, &store->fd);
    return error ? error : chunk_buffers_init(&store->buffers);
}

void chunk_store_close(struct chunk_store *store)
{
    fd_close(&store->fd);
    chunk_buffers_fini(&store->buffers);
}

/* ---- one chunk ---- */

static void place_of(const char *name, char ret_place[PLACE])
{
    snprintf(ret_place, PLACE, "%.2s/%s", name, name);
}

static int link_file(int fd, int directory, const char *name)
{
    char path[32];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, path, directory, name, AT_SYMLINK_FOLLOW) ? -errno : 0;
}

static bool is_same_file(int fd, int directory, const char *name)
{
    struct stat one, other;

    return !fstat(fd, &one) && !fstatat(directory, name, &other, AT_SYMLINK_NOFOLLOW) &&
           one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/* The directory may have an older file of that name, from an attempt that was interrupted. */
static int link_to(int fd, int directory, const char *name)
{
    int error = link_file(fd, directory, name);

    if (error != -EEXIST || is_same_file(fd, directory, name))
        return error == -EEXIST ? 0 : error;
    return unlinkat(directory, name, 0) ? -errno : link_file(fd, directory, name);
}

static int make_folder(const struct chunk_store *store, const char *place)
{
    const char folder[] = {place[0], place[1], '\0'};

    return mkdirat(store->fd, folder, 0700) && errno != EEXIST ? -errno : 0;
}

/* The checkpoint has it first, so that a clean of the store does not take it for unused. */
static int add_chunk(struct chunk_store *store, int directory, const unsigned char *data,
                     size_t size, const char *name)
{
    _cleanup_fd_ int fd = openat(store->fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    char place[PLACE];

    place_of(name, place);
    if (fd < 0)
        return -errno;
    int error = make_folder(store, place);
    if (!error)
        error = chunk_write(fd, data, size, store->compress, &store->buffers);
    if (!error)
        error = link_to(fd, directory, name);
    if (!error)
        error = link_file(fd, store->fd, place);
    store->added += error ? 0 : size;
    return error == -EEXIST ? -EAGAIN : error;
}

/* A file that is damaged, or has as many links as there can be, makes room for another one. */
static int drop_chunk(const struct chunk_store *store, const char *place)
{
    return unlinkat(store->fd, place, 0) && errno != ENOENT ? -errno : -EAGAIN;
}

/* Another process has cleaned the store since it was opened. */
static bool is_deleted(int fd)
{
    struct stat status;

    return !fstat(fd, &status) && !status.st_nlink;
}

static int share_chunk(struct chunk_store *store, int directory, int fd, size_t size,
                       const char *name)
{
    int error = link_to(fd, directory, name);
    char place[PLACE];

    place_of(name, place);
    if (error == -EMLINK)
        return drop_chunk(store, place);
    if (error == -ENOENT && is_deleted(fd))
        return -EAGAIN;
    store->shared += error ? 0 : size;
    return error;
}

/* Whether a file is fit to be linked: not one that another user may write, or that is none. */
static bool is_trusted(int fd)
{
    struct stat status;

    return !fstat(fd, &status) && S_ISREG(status.st_mode) && is_ours_alone(&status);
}

/* -EAGAIN: begin again. */
static int put_once(struct chunk_store *store, int directory, const unsigned char *data,
                    size_t size, const char *name)
{
    char place[PLACE];

    place_of(name, place);
    _cleanup_fd_ int fd = openat(store->fd, place, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno != ELOOP)
        return errno == ENOENT ? add_chunk(store, directory, data, size, name) : -errno;
    int error = fd >= 0 && is_trusted(fd) ? chunk_read(fd, name, size, &store->buffers) : -EBADMSG;
    if (error == -EBADMSG) {
        store->damaged++;
        return drop_chunk(store, place);
    }
    if (error)
        return error;
    return memcmp(store->buffers.data, data, size) ? -EEXIST
                                                   : share_chunk(store, directory, fd, size, name);
}

int chunk_store_put(struct chunk_store *store, int directory, unsigned char *data, size_t size,
                    char ret_name[CHUNK_NAME])
{
    int error;

    chunk_name(data, size, ret_name);
    do
        error = put_once(store, directory, data, size, ret_name);
    while (error == -EAGAIN);
    return error;
}

/* ---- chunks that no checkpoint has ---- */

static bool is_chunk(const struct dirent *entry)
{
    return strspn(entry->d_name, "0123456789abcdef") == CHUNK_NAME - 1 &&
           !entry->d_name[CHUNK_NAME - 1];
}

/* A checkpoint that links the chunk meanwhile keeps it all the same. */
static void clean_chunk(int folder, const char *name, uint64_t *files, uint64_t *bytes)
{
    struct stat status;

    if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) || !S_ISREG(status.st_mode) ||
        status.st_nlink > 1 || unlinkat(folder, name, 0))
        return;
    ++*files;
    *bytes += (uint64_t)status.st_size;
}

static int clean_folder(const struct chunk_store *store, const char *name, uint64_t *files,
                        uint64_t *bytes)
{
    int fd = openat(store->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);

    if (!folder) {
        fd_close(&fd);
        return errno == ENOENT ? 0 : -errno;
    }
    for (const struct dirent *entry; (entry = readdir(folder));)
        if (is_chunk(entry))
            clean_chunk(dirfd(folder), entry->d_name, files, bytes);
    closedir(folder);
    return 0;
}

int chunk_store_clean(struct chunk_store *store, uint64_t *ret_files, uint64_t *ret_bytes)
{
    int error = 0;

    *ret_files = *ret_bytes = 0;
    for (unsigned i = 0; i < 256 && !error; i++) {
        char name[3];
        snprintf(name, sizeof(name), "%02x", i);
        error = clean_folder(store, name, ret_files, ret_bytes);
    }
    return error;
}
