/* SPDX-License-Identifier: Apache-2.0 */
/* See checkpoint_directory.h. */
#include "checkpoint_directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "fd.h"
#include "suspend_file.h"
#include "text.h"

static int fail_with(const char *path, int error)
{
    if (error == EEXIST || error == ENOTEMPTY)
        return cli_fail("%s exists already; name a directory that does not", path);
    if (error == ENOSPC || error == EDQUOT)
        return cli_fail("%s: the file system is full, or a quota of it is reached", path);
    return cli_fail("%s cannot be made: %s", path, strerror(error));
}

/* The part of the path before its last name, and that name's length. */
static size_t split_path(const char *path, const char **ret_name)
{
    size_t end = strlen(path);

    while (end > 1 && path[end - 1] == '/')
        end--;
    *ret_name = path;
    for (size_t i = 0; i < end; i++)
        if (path[i] == '/')
            *ret_name = path + i + 1;
    return end - (size_t)(*ret_name - path);
}

/* "some/place/" of "some/place/name", or "". */
static bool name_temporary(struct checkpoint_directory *checkpoint)
{
    const char *name;
    size_t length = split_path(checkpoint->path, &name);

    return length &&
           text_format(checkpoint->temporary, sizeof(checkpoint->temporary), "%.*s.%.*s.XXXXXX",
                       (int)(name - checkpoint->path), checkpoint->path, (int)length, name);
}

static int open_memory(const struct checkpoint_directory *checkpoint)
{
    if (checkpoint->in_host_memory)
        return memfd_create("funnel-checkpoint", MFD_CLOEXEC);
    return openat(checkpoint->directory, "memory", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
}

static int open_files(struct checkpoint_directory *checkpoint)
{
    checkpoint->directory = open(checkpoint->temporary, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (checkpoint->directory < 0)
        return -errno;
    checkpoint->memory = open_memory(checkpoint);
    return checkpoint->memory < 0 ? -errno : 0;
}

int checkpoint_directory_make(struct checkpoint_directory *checkpoint, const char *path,
                              bool in_host_memory, int *ret_envelope)
{
    struct stat status;

    *checkpoint = (struct checkpoint_directory){
        .path = path, .directory = -1, .memory = -1, .in_host_memory = in_host_memory};
    if (!lstat(path, &status))
        return fail_with(path, EEXIST);
    if (!name_temporary(checkpoint))
        return cli_fail("%s is no name for a directory", path);
    if (!mkdtemp(checkpoint->temporary))
        return fail_with(path, errno);
    int error = open_files(checkpoint);
    if (!error)
        error = suspend_file_send(checkpoint->memory, ret_envelope);
    if (!error)
        return 0;
    checkpoint_directory_remove(checkpoint);
    checkpoint_directory_close(checkpoint);
    return fail_with(path, -error);
}

/* The name of the directory must be on its disk, too. */
static int sync_parent(const struct checkpoint_directory *checkpoint)
{
    _cleanup_fd_ int parent = openat(checkpoint->directory, "..", O_RDONLY | O_CLOEXEC);

    return parent < 0 || fsync(parent) ? -errno : 0;
}

static int finish(struct checkpoint_directory *checkpoint, struct checkpoint_manifest *manifest)
{
    struct stat status;

    if (fstat(checkpoint->memory, &status))
        return -errno;
    manifest->memory_size = (uint64_t)status.st_size;
    int error = checkpoint_manifest_write(checkpoint->directory, manifest);
    if (error)
        return error;
    if (fsync(checkpoint->directory) ||
        renameat2(AT_FDCWD, checkpoint->temporary, AT_FDCWD, checkpoint->path, RENAME_NOREPLACE))
        return -errno;
    return sync_parent(checkpoint);
}

int checkpoint_directory_publish(struct checkpoint_directory *checkpoint,
                                 struct checkpoint_manifest *manifest)
{
    int error = finish(checkpoint, manifest);

    return error ? fail_with(checkpoint->path, -error) : 0;
}

void checkpoint_chunks_remove(int directory)
{
    int fd = openat(directory, "chunks", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *chunks = fd < 0 ? NULL : fdopendir(fd);

    for (const struct dirent *entry; chunks && (entry = readdir(chunks));)
        unlinkat(fd, entry->d_name, 0);
    if (chunks)
        closedir(chunks);
    unlinkat(directory, "chunks", AT_REMOVEDIR);
    unlinkat(directory, "chunk-list", 0);
    unlinkat(directory, "chunk-list.new", 0);
}

void checkpoint_directory_remove(const struct checkpoint_directory *checkpoint)
{
    if (checkpoint->directory >= 0) {
        unlinkat(checkpoint->directory, "memory", 0);
        unlinkat(checkpoint->directory, "manifest", 0);
        checkpoint_chunks_remove(checkpoint->directory);
    }
    rmdir(checkpoint->temporary);
}

void checkpoint_directory_close(struct checkpoint_directory *checkpoint)
{
    fd_close(&checkpoint->directory);
    fd_close(&checkpoint->memory);
}
