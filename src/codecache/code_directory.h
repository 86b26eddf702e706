/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory in which servers keep the code that their clients have loaded. A later server can
 * load it before a client needs it. The directory belongs to the server's user, and no other user
 * may read or write it. Several servers may use it at the same time.
 *
 * Functions may be called from any thread.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#define CODE_BYTES_DEFAULT (512ull << 20)

struct code_directory {
    int fd;
    uid_t owner;        /* whose files are read; those of others are deleted */
    uint64_t bytes_max; /* of all files */
    char path[PATH_MAX];
};

/* Whether the cache is off: FUNNEL_CODE_CACHE is not set, or CUDA_CACHE_DISABLE is. */
bool code_directory_is_off(void);

/* FUNNEL_CACHE_PATH, else /var/cache/funnel for root, and $XDG_CACHE_HOME/funnel or
 * ~/.cache/funnel for others. False when it is not absolute, too long, or there is no home. */
bool code_directory_path(char *ret_path, size_t capacity);

/* FUNNEL_CACHE_MAXSIZE, which has a unit, else CUDA_CACHE_MAXSIZE, else CODE_BYTES_DEFAULT. */
uint64_t code_directory_limit(void);

/* Opens the directory. With `create` it first creates the directory and its parent. Returns 0 or
 * -errno. -ENOENT: it does not exist. -EPERM: another user owns it or may enter it. */
int code_directory_open(struct code_directory *directory, const char *path, bool create);

/* Closes it. One that was never opened has descriptor -1. */
void code_directory_close(struct code_directory *directory);

/* Opens a file for reading. 0; -ENOENT; -EBADF when it is no regular file of the owner, or other
 * users may read or write it. Such a file is deleted. */
int code_file_open(const struct code_directory *directory, const char *name, int *ret_fd,
                   struct stat *ret_stat);

/* Writes a file as a whole, from two parts, or not at all: 0 or -errno. */
int code_file_write(const struct code_directory *directory, const char *name, const void *head,
                    size_t head_size, const void *body, size_t body_size);
