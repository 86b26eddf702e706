/* SPDX-License-Identifier: Apache-2.0 */
/* See swap_pool.h. */
#include "swap_pool.h"

#include "cleanup.h"
#include "host_node.h"
#include "loader.h"
#include "quota.h"
#include "server_protocol.h"

#define SLOTS (SWAP_CHUNK / SWAP_SLOT)
#define FULL 0xffffffffu

void swap_pool_init(struct swap_pool *pool, const struct devices *devices,
                    struct reserve_area *area)
{
    pool->devices = devices;
    pool->area = area;
    pthread_mutex_init(&pool->lock, NULL);
}

static unsigned slots_of(uint64_t size)
{
    return (unsigned)((size + SWAP_SLOT - 1) / SWAP_SLOT);
}

static uint32_t mask_of(unsigned slots, unsigned first)
{
    return (slots == SLOTS ? FULL : (1u << slots) - 1) << first;
}

/* ---- chunks ---- */

static CUresult grant_all(const struct swap_pool *pool, uint64_t address)
{
    CUmemAccessDesc access[SERVER_MAX_DEVICES];

    for (unsigned i = 0; i < pool->devices->count; i++)
        access[i] = (CUmemAccessDesc){{CU_MEM_LOCATION_TYPE_DEVICE, (int)i},
                                      CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return driver.cuMemSetAccess(address, SWAP_CHUNK, access, pool->devices->count);
}

static CUresult map_chunk(const struct swap_pool *pool, const struct swap_chunk *chunk)
{
    CUresult result = driver.cuMemMap(chunk->address, SWAP_CHUNK, 0, chunk->handle, 0);

    if (result != CUDA_SUCCESS)
        return result;
    result = grant_all(pool, chunk->address);
    if (result != CUDA_SUCCESS)
        driver.cuMemUnmap(chunk->address, SWAP_CHUNK);
    return result;
}

static CUresult make_at_address(const struct swap_pool *pool, const struct device *device,
                                struct swap_chunk *chunk)
{
    const CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, host_node(device)},
    };
    CUresult result = driver.cuMemCreate(&chunk->handle, SWAP_CHUNK, &prop, 0);

    if (result != CUDA_SUCCESS)
        return result;
    result = map_chunk(pool, chunk);
    if (result != CUDA_SUCCESS)
        driver.cuMemRelease(chunk->handle);
    return result;
}

/* Takes about a second for three GiB, so the lock is not held. */
static CUresult make_chunk(struct swap_pool *pool, const struct device *device,
                           struct swap_chunk *ret_chunk)
{
    struct swap_chunk chunk = {.used = 0};
    CUresult result = reserve_area_take(pool->area, 0, SWAP_CHUNK, SWAP_CHUNK, &chunk.address);

    if (result != CUDA_SUCCESS)
        return result;
    result = make_at_address(pool, device, &chunk);
    if (result != CUDA_SUCCESS) {
        reserve_area_give_back(pool->area, chunk.address, SWAP_CHUNK);
        return result;
    }
    *ret_chunk = chunk;
    return CUDA_SUCCESS;
}

static void end_chunk_locked(struct swap_pool *pool, struct swap_chunk *chunk)
{
    driver.cuMemUnmap(chunk->address, SWAP_CHUNK);
    driver.cuMemRelease(chunk->handle);
    reserve_area_give_back(pool->area, chunk->address, SWAP_CHUNK);
    chunk->address = 0;
    pool->bytes -= SWAP_CHUNK;
}

/* ---- segments ---- */

/* The first of `slots` free slots side by side, or SLOTS. */
static unsigned find_slots(const struct swap_chunk *chunk, unsigned slots)
{
    unsigned first = 0;

    while (first + slots <= SLOTS && chunk->used & mask_of(slots, first))
        first++;
    return first + slots <= SLOTS ? first : SLOTS;
}

static uint64_t take_slots(struct swap_chunk *chunk, unsigned slots)
{
    unsigned first = chunk->address ? find_slots(chunk, slots) : SLOTS;

    if (first == SLOTS)
        return 0;
    chunk->used |= mask_of(slots, first);
    return chunk->address + first * SWAP_SLOT;
}

static uint64_t take_existing_locked(struct swap_pool *pool, unsigned slots)
{
    uint64_t address = 0;

    for (unsigned i = 0; i < pool->places && !address; i++)
        address = take_slots(&pool->chunks[i], slots);
    return address;
}

static struct swap_chunk *free_place_locked(struct swap_pool *pool)
{
    for (unsigned i = 0; i < pool->places; i++)
        if (!pool->chunks[i].address && !pool->chunks[i].is_made)
            return &pool->chunks[i];
    return pool->places < SWAP_CHUNKS_MAX ? &pool->chunks[pool->places++] : NULL;
}

/* A place for one more chunk, which counts from now on; NULL beyond the quota. */
static struct swap_chunk *claim_place_locked(struct swap_pool *pool)
{
    struct swap_chunk *place = NULL;

    if (pool->bytes + SWAP_CHUNK <= quota(QUOTA_SWAP_MEMORY))
        place = free_place_locked(pool);
    if (!place)
        return NULL;
    place->is_made = true;
    pool->bytes += SWAP_CHUNK;
    return place;
}

/* Fills a place that has been claimed. The first slots are the caller's. */
static CUresult fill_place(struct swap_pool *pool, const struct device *device,
                           struct swap_chunk *place, unsigned slots, uint64_t *ret_address)
{
    struct swap_chunk chunk = {.address = 0};
    CUresult result = make_chunk(pool, device, &chunk);
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&pool->lock);

    *place = chunk;
    if (result != CUDA_SUCCESS) {
        pool->bytes -= SWAP_CHUNK;
        return result;
    }
    *ret_address = slots ? take_slots(place, slots) : 0;
    pool->used += slots * SWAP_SLOT;
    return CUDA_SUCCESS;
}

/* Either slots that there are, or a place that has been claimed, or neither. */
static struct swap_chunk *take_or_claim(struct swap_pool *pool, unsigned slots,
                                        uint64_t *ret_address)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&pool->lock);

    *ret_address = take_existing_locked(pool, slots);
    if (!*ret_address)
        return claim_place_locked(pool);
    pool->used += slots * SWAP_SLOT;
    return NULL;
}

CUresult swap_pool_take(struct swap_pool *pool, const struct device *device, uint64_t size,
                        uint64_t *ret_address)
{
    struct swap_chunk *place = take_or_claim(pool, slots_of(size), ret_address);

    if (place)
        return fill_place(pool, device, place, slots_of(size), ret_address);
    return *ret_address ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

bool swap_pool_take_made(struct swap_pool *pool, uint64_t size, uint64_t *ret_address)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&pool->lock);

    *ret_address = take_existing_locked(pool, slots_of(size));
    if (*ret_address)
        pool->used += slots_of(size) * SWAP_SLOT;
    return *ret_address != 0;
}

void swap_pool_keep(struct swap_pool *pool, uint64_t size, bool kept)
{
    uint64_t bytes = slots_of(size) * SWAP_SLOT;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&pool->lock);

    pool->used += kept ? -bytes : bytes;
    pool->kept += kept ? bytes : -bytes;
}

static struct swap_chunk *claim_ahead(struct swap_pool *pool, uint64_t unused)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&pool->lock);

    return pool->bytes < pool->used + unused ? claim_place_locked(pool) : NULL;
}

bool swap_pool_lock_ahead(struct swap_pool *pool, const struct device *device, uint64_t unused)
{
    struct swap_chunk *place = claim_ahead(pool, unused);
    uint64_t none;

    return place && fill_place(pool, device, place, 0, &none) == CUDA_SUCCESS;
}

static struct swap_chunk *chunk_at_locked(struct swap_pool *pool, uint64_t address)
{
    struct swap_chunk *chunk = pool->chunks;

    while (!chunk->address || address - chunk->address >= SWAP_CHUNK)
        chunk++;
    return chunk;
}

void swap_pool_give(struct swap_pool *pool, uint64_t address, uint64_t size)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&pool->lock);
    struct swap_chunk *chunk = chunk_at_locked(pool, address);

    chunk->used &= ~mask_of(slots_of(size), (unsigned)((address - chunk->address) / SWAP_SLOT));
    pool->used -= slots_of(size) * SWAP_SLOT;
}

void swap_pool_trim(struct swap_pool *pool)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&pool->lock);

    for (unsigned i = 0; i < pool->places; i++)
        if (pool->chunks[i].address && !pool->chunks[i].used)
            end_chunk_locked(pool, &pool->chunks[i]);
}
