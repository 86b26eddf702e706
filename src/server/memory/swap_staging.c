/* SPDX-License-Identifier: Apache-2.0 */
/* See swap_staging.h. */
#include "swap_staging.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "log.h"
#include "page_lock.h"

#define BYTES (SWAP_BUFFERS * SWAP_BUFFER)

void swap_staging_init(struct swap_staging *staging, const struct page_locker *locker)
{
    *staging = (struct swap_staging){.locker = locker};
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

static void make_buffers(struct swap_staging *staging)
{
    unsigned char *memory = map_aligned();

    if (memory && page_lock_chunks(staging->locker, memory, BYTES) != CUDA_SUCCESS)
        log_line("The buffers for files of suspended programs cannot be page-locked: copies will "
                 "be slower");
    staging->memory = memory;
}

/* Partner: swap_staging_give(). */
static bool take_own(struct swap_staging *staging)
{
    return !atomic_exchange_explicit(&staging->is_taken, true, memory_order_acquire);
}

unsigned char *swap_staging_take(struct swap_staging *staging)
{
    if (!take_own(staging))
        return malloc(BYTES);
    if (!staging->memory)
        make_buffers(staging);
    if (staging->memory)
        return staging->memory;
    swap_staging_give(staging, NULL);
    return NULL;
}

/* Partner: take_own(). */
void swap_staging_give(struct swap_staging *staging, unsigned char *buffers)
{
    if (buffers == staging->memory)
        atomic_store_explicit(&staging->is_taken, false, memory_order_release);
    else
        free(buffers);
}
