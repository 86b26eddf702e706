/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of compute_store.h, and the eviction of its files. From any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A descriptor of the folder, which the caller closes. With `create` a missing folder is created.
 * -ENOENT; -EPERM when another user owns the folder or may enter it; -errno. */
int compute_folder_open(bool create);

/* CUDA_CACHE_MAXSIZE, or the default. */
uint64_t compute_folder_limit(void);

/* Deletes the least recently used files until the rest have at most `bytes` together. */
void compute_folder_shrink(int folder, uint64_t bytes);
