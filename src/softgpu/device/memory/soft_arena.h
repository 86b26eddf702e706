/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arena: a memory file for all device memory, so that another process can map a range of it
 * (ipc_file.h). An offset is never reused. The functions need soft_lock; sizes and offsets are
 * bytes.
 */
#pragma once

#include <stdint.h>

/* `size` zeroed bytes, a multiple of the page size, and their offset in the file; NULL without a
 * file or without space. */
void *arena_map_locked(uint64_t size, uint64_t *ret_offset);
/* Other processes that have it mapped find zeros there. */
void arena_unmap_locked(void *pages, uint64_t size, uint64_t offset);
/* The file, or -1. */
int arena_fd_locked(void);
