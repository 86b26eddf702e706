/* SPDX-License-Identifier: Apache-2.0 */
/* Every file is reached through the descriptor of the directory that has been checked. */
#include "code_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fd.h"
#include "grammar.h"
#include "switch.h"
#include "text.h"

#define ROOT_DIRECTORY "/var/cache/funnel"

#define TEMPORARY_MAX 80u

bool code_directory_is_off(void)
{
    return !switch_is_on("FUNNEL_CODE_CACHE") || switch_is_on("CUDA_CACHE_DISABLE");
}

bool code_directory_path(char *ret_path, size_t capacity)
{
    const char *own = getenv("FUNNEL_CACHE_PATH"), *base = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");

    if (own && *own)
        return *own == '/' && text_copy(ret_path, capacity, own);
    if (geteuid() == 0)
        return text_copy(ret_path, capacity, ROOT_DIRECTORY);
    if (base && *base == '/')
        return text_format(ret_path, capacity, "%s/funnel", base);
    return home && *home == '/' && text_format(ret_path, capacity, "%s/.cache/funnel", home);
}

uint64_t code_directory_limit(void)
{
    const char *own = getenv("FUNNEL_CACHE_MAXSIZE"), *theirs = getenv("CUDA_CACHE_MAXSIZE");
    uint64_t bytes;

    if (own && !grammar_memory(own, &bytes))
        return bytes;
    if (theirs && !text_to_u64(theirs, &bytes))
        return bytes;
    return CODE_BYTES_DEFAULT;
}

/* Errors show when the directory is opened. */
static void make_directories(const char *path)
{
    char above[PATH_MAX];
    char *slash;

    text_copy(above, sizeof(above), path);
    slash = strrchr(above, '/');
    if (slash && slash != above) {
        *slash = '\0';
        mkdir(above, 0700);
    }
    mkdir(path, 0700);
}

int code_directory_open(struct code_directory *directory, const char *path, bool create)
{
    _cleanup_fd_ int fd = -1;
    struct stat info;

    *directory = (struct code_directory){.fd = -1, .owner = geteuid()};
    if (!text_copy(directory->path, sizeof(directory->path), path))
        return -ENAMETOOLONG;
    if (create)
        make_directories(path);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info))
        return -errno;
    if (info.st_uid != directory->owner || (info.st_mode & 077))
        return -EPERM;
    directory->bytes_max = code_directory_limit();
    directory->fd = fd_steal(&fd);
    return 0;
}

void code_directory_close(struct code_directory *directory)
{
    fd_close(&directory->fd);
}

static bool is_own(const struct code_directory *directory, const struct stat *info)
{
    return S_ISREG(info->st_mode) && info->st_uid == directory->owner && !(info->st_mode & 077) &&
           info->st_nlink == 1;
}

int code_file_open(const struct code_directory *directory, const char *name, int *ret_fd,
                   struct stat *ret_stat)
{
    _cleanup_fd_ int fd =
        openat(directory->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0 && errno == ENOENT)
        return -ENOENT;
    if (fd < 0 || fstat(fd, ret_stat) || !is_own(directory, ret_stat)) {
        unlinkat(directory->fd, name, 0);
        return -EBADF;
    }
    *ret_fd = fd_steal(&fd);
    return 0;
}

static int write_parts(int fd, const void *head, size_t head_size, const void *body,
                       size_t body_size)
{
    int error = write_all(fd, head, head_size);

    return error ? error : write_all(fd, body, body_size);
}

/* A reader sees the old file or the new one. After a crash of the machine the file may be cut
 * short; its hash detects that. */
int code_file_write(const struct code_directory *directory, const char *name, const void *head,
                    size_t head_size, const void *body, size_t body_size)
{
    static _Atomic unsigned last;
    char temporary[TEMPORARY_MAX];

    text_format(temporary, sizeof(temporary), "%.40s.new-%d-%u", name, (int)getpid(), ++last);
    _cleanup_fd_ int fd = openat(directory->fd, temporary,
                                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int error = write_parts(fd, head, head_size, body, body_size);
    return fd_put_in_place(directory->fd, temporary, name, error);
}
