/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results of compilers, in one file for each compilation. The folder is funnel-compiler under
 * CUDA_CACHE_PATH, else $XDG_CACHE_HOME, else ~/.cache. Folder and files belong to the user of the
 * process alone; files of others are not read. A file is written as a whole or not at all. It holds
 * its key, which is compared, and a hash of its data. All files have at most CUDA_CACHE_MAXSIZE
 * bytes (1 GiB); the least recently used are evicted.
 *
 * Functions may be called from any thread, and several processes may use the folder.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct compute_key {
    size_t size;
    char bytes[];
};

/* CUDA_CACHE_DISABLE is set to anything but 0, or the program has more rights than its user. */
bool compute_store_is_off(void);

/* The data of this key, which the caller frees: 0; -ENOENT; -EBADMSG when the file is not valid and
 * has been deleted; -errno. */
int compute_store_find(const struct compute_key *key, void **ret_data, uint32_t *ret_size);

/* 0; -EFBIG when the data exceeds the limit of the folder; -EPERM when another user owns the
 * folder; -errno. */
int compute_store_add(const struct compute_key *key, const void *data, uint32_t size);
