/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What compilers have made, kept in files of the user: one file for each compilation, in
 * funnel-compiler under CUDA_CACHE_PATH, else $XDG_CACHE_HOME, else ~/.cache. The folder and the
 * files belong to the user of the process alone; anything else there is not read. A file is written
 * as a whole or not at all, holds its key, which is compared, and a hash of its data. Together they
 * have at most CUDA_CACHE_MAXSIZE bytes (1 GiB); those that have not been used for longest make
 * room.
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

/* What was added under this key, for the caller to free: 0; -ENOENT; -EBADMSG when the file is
 * not valid, and then it is deleted; -errno. */
int compute_store_find(const struct compute_key *key, void **ret_data, uint32_t *ret_size);

/* 0; -EFBIG when it would take more than the folder may hold; -EPERM when the folder is somebody
 * else's; -errno. */
int compute_store_add(const struct compute_key *key, const void *data, uint32_t size);
