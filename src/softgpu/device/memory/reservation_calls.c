/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reserved addresses. They stay mapped to something at all times. A kernel that runs into a range
 * just unmapped finds scratch pages, not the end of the process.
 */
#include <sys/mman.h>

#include "ranges.h"
#include "soft_context.h"
#include "soft_memory.h"
#include "vmm_granularity.h"

static struct ranges reservations;

static void *reserve_at(uint64_t address, uint64_t size, int extra)
{
    void *pages = mmap((void *)address, size, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | extra, -1, 0);

    return pages == MAP_FAILED ? NULL : pages;
}

/* Anywhere: with space to cut both ends off to the alignment. */
static void *reserve_aligned(uint64_t size, uint64_t alignment)
{
    char *pages = reserve_at(0, size + alignment, 0);
    uint64_t start, slack;

    if (!pages)
        return NULL;
    start = ((uintptr_t)pages + alignment - 1) & ~(alignment - 1);
    slack = start - (uintptr_t)pages;
    if (slack)
        munmap(pages, slack);
    if (slack < alignment)
        munmap((void *)(start + size), alignment - slack);
    return (void *)start;
}

CUresult soft_cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,
                                  unsigned long long flags)
{
    void *pages = NULL;

    if (size == 0 || !vmm_is_whole(size) || flags || (alignment & (alignment - 1)))
        return CUDA_ERROR_INVALID_VALUE;
    if (alignment < VMM_GRANULARITY)
        alignment = VMM_GRANULARITY;
    if (size > INT64_MAX || alignment > INT64_MAX - size)
        return CUDA_ERROR_OUT_OF_MEMORY;
    SOFT_LOCKED;
    if (addr && addr % alignment == 0)
        pages = reserve_at(addr, size, MAP_FIXED_NOREPLACE);
    if (!pages)
        pages = reserve_aligned(size, alignment);
    if (!pages)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (ranges_add(&reservations, (uintptr_t)pages, size, pages)) {
        munmap(pages, size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *ptr = (uintptr_t)pages;
    return CUDA_SUCCESS;
}

CUresult soft_cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
    const struct range *range;
    SOFT_LOCKED;

    range = ranges_find(&reservations, ptr);
    if (!range || range->start != ptr || range->size != size)
        return CUDA_ERROR_INVALID_VALUE;
    if (memory_overlaps_locked(ptr, size))
        return CUDA_ERROR_INVALID_VALUE;
    ranges_remove(&reservations, ptr, NULL);
    munmap((void *)ptr, size);
    return CUDA_SUCCESS;
}

void memory_find_reservation_locked(uint64_t address, uint64_t *ret_start, uint64_t *ret_size)
{
    const struct range *range = ranges_find(&reservations, address);

    if (!range)
        return;
    *ret_start = range->start;
    *ret_size = range->size;
}

bool memory_is_reserved_locked(uint64_t address, uint64_t size)
{
    const struct range *range = ranges_find(&reservations, address);

    return range && size <= range->start + range->size - address;
}
