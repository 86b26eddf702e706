/* SPDX-License-Identifier: Apache-2.0 */
/* Reserving addresses; see page_reserve.h. */
#include "page_reserve.h"

#include <sys/mman.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

/* A kernel older than the flag takes the address for a hint. */
bool page_reserve(uint64_t address, uint64_t size)
{
    void *wanted = (void *)(uintptr_t)address;
    void *got = mmap(wanted, size, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

    if (got == MAP_FAILED)
        return false;
    if (got != wanted) {
        munmap(got, size);
        return false;
    }
    madvise(got, size, MADV_DONTFORK);
    return true;
}
