/* SPDX-License-Identifier: Apache-2.0 */
/* See swap_staging.h. */
#include "swap_staging.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "cleanup.h"
#include "log.h"
#include "page_lock.h"

#define BYTES (SWAP_BUFFERS * (uint64_t)SWAP_BUFFER)
#define ALL ((1u << SWAP_BUFFERS) - 1)

void swap_staging_init(struct swap_staging *staging, const struct page_locker *locker)
{
    *staging = (struct swap_staging){.locker = locker};
    pthread_mutex_init(&staging->lock, NULL);
}

/* No buffer crosses a border of page-locked chunks. */
static unsigned char *map_aligned(void)
{
    char *memory = mmap(NULL, BYTES + PAGE_LOCK_CHUNK, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (memory == MAP_FAILED)
        return NULL;
    return (unsigned char *)memory + (-(uintptr_t)memory & (PAGE_LOCK_CHUNK - 1));
}

static void make_buffers_locked(struct swap_staging *staging)
{
    unsigned char *memory = map_aligned();

    if (memory && page_lock_chunks(staging->locker, memory, BYTES) != CUDA_SUCCESS)
        log_line("The buffers for files of suspended programs cannot be page-locked: copies will "
                 "be slower");
    staging->memory = memory;
}

/* NULL while others have all. */
static unsigned char *take_own_locked(struct swap_staging *staging)
{
    if (!staging->memory)
        make_buffers_locked(staging);
    if (!staging->memory || staging->taken == ALL)
        return NULL;
    unsigned number = (unsigned)__builtin_ctz(~staging->taken);
    staging->taken |= 1u << number;
    return staging->memory + number * (size_t)SWAP_BUFFER;
}

static unsigned char *take_own(struct swap_staging *staging)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&staging->lock);

    return take_own_locked(staging);
}

unsigned char *swap_staging_take(struct swap_staging *staging)
{
    unsigned char *own = take_own(staging);

    return own ? own : malloc(SWAP_BUFFER);
}

static bool give_own(struct swap_staging *staging, const unsigned char *buffer)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&staging->lock);
    uint64_t offset = (uintptr_t)buffer - (uintptr_t)staging->memory;

    if (!staging->memory || offset >= BYTES)
        return false;
    staging->taken &= ~(1u << offset / SWAP_BUFFER);
    return true;
}

void swap_staging_give(struct swap_staging *staging, unsigned char *buffer)
{
    if (!give_own(staging, buffer))
        free(buffer);
}
