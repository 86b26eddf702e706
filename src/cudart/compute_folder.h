/* SPDX-License-Identifier: Apache-2.0 */
/* The folder in which compute_store.h keeps its files, and room in it. From any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Its descriptor, for the caller to close; with `create` it is made where it is not there. -ENOENT;
 * -EPERM when it is somebody else's, or others may enter it; -errno. */
int compute_folder_open(bool create);

/* CUDA_CACHE_MAXSIZE, or the default. */
uint64_t compute_folder_limit(void);

/* Deletes files until all together have at most `bytes`, those first that were last used longest
 * ago. */
void compute_folder_shrink(int folder, uint64_t bytes);
