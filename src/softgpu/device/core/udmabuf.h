/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linux makes dma-bufs of memory files (/dev/udmabuf) where its administrator lets it. Nothing here
 * takes locks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Whether this process may have it make dma-bufs: found out once. */
bool udmabuf_is_there(void);

/* A dma-buf of whole pages of a memory file that cannot shrink, which keeps these pages: the
 * descriptor, or -errno. By default Linux makes none of more than 64 MiB (-EINVAL). */
int udmabuf_create(int fd, uint64_t offset, uint64_t size);
