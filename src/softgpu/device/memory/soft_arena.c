/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sparse file for all device memory of the process. Freed ranges are punched out of it.
 */
#include "soft_arena.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fd.h"

/* Sparse, so only accessed pages take memory. */
#define ARENA_SIZE (1ull << 60)

static int arena = -1;
static bool arena_failed;
static uint64_t arena_used;

static int arena_create(void)
{
    _cleanup_fd_ int fd = memfd_create("funnel-soft-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0 || ftruncate(fd, ARENA_SIZE) ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
        return -1;
    return fd_steal(&fd);
}

int arena_fd_locked(void)
{
    if (arena < 0 && !arena_failed) {
        arena = arena_create();
        arena_failed = arena < 0;
    }
    return arena;
}

/* A child of fork has no use for it, and must not keep pages shared with the parent. */
void *arena_map_locked(uint64_t size, uint64_t *ret_offset)
{
    int fd = arena_fd_locked();
    void *pages;

    if (fd < 0 || size > ARENA_SIZE - arena_used)
        return NULL;
    pages =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, (off_t)arena_used);
    if (pages == MAP_FAILED)
        return NULL;
    madvise(pages, size, MADV_DONTFORK);
    *ret_offset = arena_used;
    arena_used += size;
    return pages;
}

void arena_unmap_locked(void *pages, uint64_t size, uint64_t offset)
{
    munmap(pages, size);
    fallocate(arena, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)size);
}
