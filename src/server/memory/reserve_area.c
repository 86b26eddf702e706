/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reservations of all clients, side by side. For the driver an address is a hint; if it returns
 * another one, the next slab is tried.
 */
#include "reserve_area.h"

#include "attach.h"
#include "cleanup.h"
#include "loader.h"

#define PLACES_TRIED 8

/* Programs reserve more than a device has: PyTorch an eighth more, for each stream and each block
 * size; llama.cpp 32 GiB. */
#define SHARE_STRIDES 16u
#define SHARE_LEAST (1ull << 40)

void reserve_area_init(struct reserve_area *area)
{
    pthread_mutex_init(&area->lock, NULL);
    ranges_init(&area->used);
    ranges_init(&area->slabs);
}

void reserve_area_fini(struct reserve_area *area)
{
    ranges_fini(&area->used);
    ranges_fini(&area->slabs);
}

uint64_t reserve_area_limit(const struct devices *devices)
{
    uint64_t share = SHARE_STRIDES * devices->stride;

    return share > SHARE_LEAST ? share : SHARE_LEAST;
}

/* NVIDIA's driver honors the requested address of a large reservation, but places a small one, as
 * seen with 256 MiB, anywhere. So the area is reserved in slabs, which stay, and small reservations
 * are parts of a slab. Large reservations consist of whole slabs, and return to the driver. */
#define SLABS 512u /* of 64 GiB */
#define SLAB ((RESERVE_END - RESERVE_FIRST) / SLABS)
#define LARGE (SLAB / 4)

/* The server's own are below those of clients: the pool of a terabyte (swap_pool.h). The step has
 * no divisor in common with the number of slabs. */
#define OWN_SLABS 16u
#define CLIENT_SLABS (SLABS - OWN_SLABS)
#define CLIENT_STEP 307u

uint64_t reserve_area_start(unsigned window)
{
    return RESERVE_FIRST + (OWN_SLABS + window * CLIENT_STEP % CLIENT_SLABS) * SLAB;
}

static bool is_large(uint64_t size)
{
    return size > LARGE;
}

static uint64_t slab_of(uint64_t address)
{
    return address & ~(SLAB - 1);
}

static uint64_t whole_slabs(uint64_t size)
{
    return (size + SLAB - 1) & ~(SLAB - 1);
}

/* The next possible address for a reservation; `address` itself when it is good. A large
 * reservation must not overlap a slab of small ones, and a small one lies in one slab. */
static uint64_t next_try_locked(const struct reserve_area *area, uint64_t address, uint64_t size)
{
    const struct range *slab = ranges_find(&area->slabs, address);

    if (!is_large(size))
        return slab_of(address + size - 1) == slab_of(address) ? address : slab_of(address) + SLAB;
    if (!slab)
        slab = ranges_next(&area->slabs, address);
    return slab && slab->start < address + size ? slab->start + SLAB : address;
}

static int find_gap_locked(const struct reserve_area *area, uint64_t from, uint64_t size,
                           uint64_t alignment, uint64_t *ret_address)
{
    for (;;) {
        uint64_t address, better;
        int r = ranges_gap(&area->used, from, RESERVE_END, size, alignment, &address);

        if (r)
            return r;
        better = next_try_locked(area, address, size);
        if (better == address) {
            *ret_address = address;
            return 0;
        }
        from = better;
    }
}

static CUresult reserve_addresses(uint64_t address, uint64_t size)
{
    CUdeviceptr got = 0;
    CUresult result = driver.cuMemAddressReserve(&got, size, 0, address, 0);

    if (result == CUDA_SUCCESS && got != address) {
        driver.cuMemAddressFree(got, size);
        return CUDA_ERROR_MAP_FAILED;
    }
    return result;
}

/* Reserves the addresses with the driver, unless they are in a reserved slab. */
static CUresult back_locked(struct reserve_area *area, uint64_t address, uint64_t size)
{
    if (is_large(size))
        return reserve_addresses(address, size);
    if (ranges_find(&area->slabs, address))
        return CUDA_SUCCESS;

    CUresult result = reserve_addresses(slab_of(address), SLAB);
    if (result == CUDA_SUCCESS && ranges_add(&area->slabs, slab_of(address), SLAB, area)) {
        driver.cuMemAddressFree(slab_of(address), SLAB);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    return result;
}

static CUresult enter_locked(struct reserve_area *area, uint64_t address, uint64_t size)
{
    if (!ranges_add(&area->used, address, size, area))
        return CUDA_SUCCESS;
    if (is_large(size))
        driver.cuMemAddressFree(address, size);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult reserve_area_take(struct reserve_area *area, uint64_t from, uint64_t size,
                           uint64_t alignment, uint64_t *ret_address)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&area->lock);
    uint64_t address;

    if (size > RESERVE_END - RESERVE_FIRST)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (is_large(size)) {
        size = whole_slabs(size);
        alignment = alignment > SLAB ? alignment : SLAB;
    }
    if (from < RESERVE_FIRST || find_gap_locked(area, from, size, alignment, &address))
        from = RESERVE_FIRST;
    for (int i = 0; i < PLACES_TRIED; i++) {
        if (find_gap_locked(area, from, size, alignment, &address))
            return CUDA_ERROR_OUT_OF_MEMORY;
        if (back_locked(area, address, size) == CUDA_SUCCESS) {
            *ret_address = address;
            return enter_locked(area, address, size);
        }
        from = slab_of(address) + SLAB;
    }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

void reserve_area_give_back(struct reserve_area *area, uint64_t address, uint64_t size)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&area->lock);

    if (is_large(size))
        driver.cuMemAddressFree(address, whole_slabs(size));
    ranges_remove(&area->used, address, NULL);
}
