/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reservations of all clients, side by side. The driver takes an address as a wish; where it has
 * something else, the next place is tried.
 */
#include "area.h"

#include "attach.h"
#include "cleanup.h"
#include "loader.h"

#define PLACES_TRIED 8

/* Programs reserve more than there is: PyTorch an eighth more than a device has, for each stream
 * and each size of block; llama.cpp 32 GiB. */
#define SHARE_STRIDES 16u
#define SHARE_LEAST (1ull << 40)

void area_init(struct area *area)
{
    pthread_mutex_init(&area->lock, NULL);
    ranges_init(&area->used);
}

uint64_t area_share(const struct devices *devices)
{
    uint64_t share = SHARE_STRIDES * devices->stride;

    return share > SHARE_LEAST ? share : SHARE_LEAST;
}

static CUresult find_gap(struct area *area, uint64_t from, uint64_t size, uint64_t alignment,
                         uint64_t *ret_address)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&area->lock);

    if (from < RESERVE_FIRST ||
        ranges_gap(&area->used, from, RESERVE_END, size, alignment, ret_address)) {
        if (ranges_gap(&area->used, RESERVE_FIRST, RESERVE_END, size, alignment, ret_address))
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return ranges_add(&area->used, *ret_address, size, area) ? CUDA_ERROR_OUT_OF_MEMORY
                                                             : CUDA_SUCCESS;
}

static void forget(struct area *area, uint64_t address)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&area->lock);

    ranges_remove(&area->used, address, NULL);
}

static CUresult reserve(uint64_t address, uint64_t size)
{
    CUdeviceptr got = 0;
    CUresult result = driver.cuMemAddressReserve(&got, size, 0, address, 0);

    if (result == CUDA_SUCCESS && got != address) {
        driver.cuMemAddressFree(got, size);
        return CUDA_ERROR_MAP_FAILED;
    }
    return result;
}

/* NVIDIA's driver does not grant again what was freed, nor what lies close to it. */
#define REFUSED_STEP (64ull << 30)

CUresult area_take(struct area *area, uint64_t from, uint64_t size, uint64_t alignment,
                   uint64_t *ret_address)
{
    for (int i = 0; i < PLACES_TRIED; i++) {
        uint64_t address;
        CUresult result = find_gap(area, from, size, alignment, &address);

        if (result != CUDA_SUCCESS)
            return result;
        result = reserve(address, size);
        if (result == CUDA_SUCCESS) {
            *ret_address = address;
            return CUDA_SUCCESS;
        }
        forget(area, address);
        from = address + size + (uint64_t)i * REFUSED_STEP;
    }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* The driver first: as long as the area has the range, nobody else is sent there. */
void area_give_back(struct area *area, uint64_t address, uint64_t size)
{
    driver.cuMemAddressFree(address, size);
    forget(area, address);
}
