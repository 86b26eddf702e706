/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One address everywhere: page-locked memory that the GPU sees elsewhere is of no use here. Pieces
 * end at multiples of their size, so an address alone tells where its piece ends.
 */
#include "page_lock.h"

#include <stdbool.h>
#include <sys/mman.h>
#include <time.h>

#include "quiesce.h"

/* Long enough for a thread that waits for the driver's lock to wake up and take it. */
#define PAUSE_NS 50000

static uint64_t chunk_size = PAGE_LOCK_CHUNK;
static bool makes_pages = true;

void page_lock_whole(void)
{
    chunk_size = 0;
}

void page_lock_for_soft(void)
{
    makes_pages = false;
}

uint64_t page_lock_left(uint64_t address)
{
    return chunk_size ? chunk_size - address % chunk_size : UINT64_MAX;
}

/* While the driver locks pages, other threads' launches wait. Pages that are there already are
 * locked in a fifth of the time, so they are made before. Where the kernel does not know how, the
 * driver makes them. The software GPU needs only those that somebody touches. */
static void populate(void *address, size_t size)
{
    if (!makes_pages)
        return;
    madvise(address, size, MADV_HUGEPAGE);
#ifdef MADV_POPULATE_WRITE
    madvise(address, size, MADV_POPULATE_WRITE);
#endif
}

static CUresult lock(void *address, size_t size)
{
    CUdeviceptr seen = 0;
    CUresult result = driver.cuMemHostRegister_v2(
        address, size, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);

    if (result != CUDA_SUCCESS)
        return result;
    result = driver.cuMemHostGetDevicePointer_v2
                 ? driver.cuMemHostGetDevicePointer_v2(&seen, address, 0)
                 : CUDA_ERROR_NOT_SUPPORTED;
    if (result == CUDA_SUCCESS && seen != (uintptr_t)address)
        result = CUDA_ERROR_NOT_SUPPORTED;
    if (result != CUDA_SUCCESS)
        page_unlock(address);
    return result;
}

CUresult page_lock(void *address, size_t size)
{
    populate(address, size);
    return lock(address, size);
}

void page_unlock(void *address)
{
    driver.cuMemHostUnregister(address);
}

static size_t chunk_at(const char *address, size_t left)
{
    uint64_t size = page_lock_left((uintptr_t)address);

    return size < left ? (size_t)size : left;
}

static void pause_between(void)
{
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

/* Where some stream waits for too long the pages stay locked, and their addresses are lost. */
static void give_up(void *address, size_t size)
{
    if (!size || quiesce_begin("cuMemHostUnregister") != CUDA_SUCCESS)
        return;
    page_unlock_chunks(address, size);
    quiesce_end();
}

CUresult page_lock_chunks(void *address, size_t size)
{
    char *start = address;
    size_t piece;

    populate(address, size);
    for (size_t done = 0; done < size; done += piece) {
        piece = chunk_at(start + done, size - done);
        if (done)
            pause_between();
        CUresult result = lock(start + done, piece);
        if (result != CUDA_SUCCESS) {
            give_up(address, done);
            return result;
        }
    }
    return CUDA_SUCCESS;
}

void page_unlock_chunks(void *address, size_t size)
{
    char *start = address;

    for (size_t done = 0; done < size; done += chunk_at(start + done, size - done))
        page_unlock(start + done);
}
