/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arena: a memory file of which device memory is made, so that another process can map a piece
 * of it (ipc_file.h). It has no end: an offset is never used again. The
 * functions need soft_lock; sizes and offsets are bytes.
 */
#pragma once

#include <stdint.h>

/* `size` zeroed bytes, a multiple of the page size, and where they are in the file; NULL when there
 * is no file or no room. */
void *arena_map_locked(uint64_t size, uint64_t *ret_offset);
/* Other processes that have it mapped find zeros there. */
void arena_unmap_locked(void *pages, uint64_t size, uint64_t offset);
/* The file, or -1. */
int arena_fd_locked(void);
