/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page-locked memory must have the same address on the GPU. Chunks end at multiples of their size,
 * so an address tells the end of its chunk.
 */
#include "page_lock.h"

#include <stdbool.h>
#include <time.h>

#include "gate.h"
#include "shm.h"

/* Long enough for a waiting thread to wake up and take the driver's lock. */
#define PAUSE_NS 50000

void page_locker_init(struct page_locker *locker, struct gate *gate,
                      const struct page_lock_options *options)
{
    *locker = (struct page_locker){
        .gate = gate,
        .chunk_size = options->whole ? 0 : PAGE_LOCK_CHUNK,
        .populates = options->populates,
    };
}

uint64_t page_lock_left(const struct page_locker *locker, uint64_t address)
{
    return locker->chunk_size ? locker->chunk_size - address % locker->chunk_size : UINT64_MAX;
}

/* While the driver locks pages, launches of other threads wait. Locking existing pages takes a
 * fifth of the time, so they are created before. Where the kernel does not support that, the driver
 * creates them. */
static void populate_pages(const struct page_locker *locker, void *address, size_t size)
{
    if (locker->populates)
        shm_populate_mapping(address, size);
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

CUresult page_lock(const struct page_locker *locker, void *address, size_t size)
{
    populate_pages(locker, address, size);
    return lock(address, size);
}

void page_unlock(void *address)
{
    driver.cuMemHostUnregister(address);
}

static size_t chunk_at(const struct page_locker *locker, const char *address, size_t left)
{
    uint64_t size = page_lock_left(locker, (uintptr_t)address);

    return size < left ? (size_t)size : left;
}

/* If a stream waits for too long, the pages stay locked, and their addresses are lost. */
static void unlock_partly(const struct page_locker *locker, void *address, size_t size)
{
    if (!size || gate_close(locker->gate, "cuMemHostUnregister") != CUDA_SUCCESS)
        return;
    page_unlock_chunks(locker, address, size);
    gate_open(locker->gate);
}

CUresult page_lock_chunks(const struct page_locker *locker, void *address, size_t size)
{
    char *start = address;
    size_t chunk;

    populate_pages(locker, address, size);
    for (size_t done = 0; done < size; done += chunk) {
        chunk = chunk_at(locker, start + done, size - done);
        if (done)
            nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
        CUresult result = lock(start + done, chunk);
        if (result != CUDA_SUCCESS) {
            unlock_partly(locker, address, done);
            return result;
        }
    }
    return CUDA_SUCCESS;
}

void page_unlock_chunks(const struct page_locker *locker, void *address, size_t size)
{
    char *start = address;

    for (size_t done = 0; done < size; done += chunk_at(locker, start + done, size - done))
        page_unlock(start + done);
}
