/* SPDX-License-Identifier: Apache-2.0 */
/* See pool_places.h. */
#include "pool_places.h"

#include "cleanup.h"
#include "client_prototypes.h"
#include "cuda_pool.h"

struct host_place {
    uint64_t standard, current; /* 0 = not made yet */
};

static struct {
    pthread_mutex_t lock;
    struct host_place host, numa;
} places;

#define PLACES_LOCKED _cleanup_mutex_ pthread_mutex_t *places_held = mutex_hold(&places.lock)

static struct host_place *place_of(const CUmemLocation *location)
{
    return location->type == CU_MEM_LOCATION_TYPE_HOST ? &places.host : &places.numa;
}

static CUresult make_standard_locked(struct host_place *place)
{
    CUresult result = client_error();

    if (place->standard || result != CUDA_SUCCESS)
        return result;
    place->standard = place->current = pool_create(NULL, 0);
    return place->standard ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static bool leave_locked(struct host_place *place, uint64_t pool)
{
    if (place->current == pool)
        place->current = place->standard;
    return place->standard != pool;
}

void pool_places_init(void)
{
    pthread_mutex_init(&places.lock, NULL);
    places.host = places.numa = (struct host_place){0};
}

bool pool_places_leave(uint64_t pool)
{
    PLACES_LOCKED;

    return leave_locked(&places.host, pool) && leave_locked(&places.numa, pool);
}

CUresult client_cuMemGetDefaultMemPool(CUmemoryPool *pool_out, CUmemLocation *location,
                                       CUmemAllocationType type)
{
    CUresult result = cuda_pool_check_place(location, type);

    if (result == CUDA_SUCCESS && !cuda_pool_is_on_host(location))
        return client_cuDeviceGetDefaultMemPool(pool_out, location->id);
    PLACES_LOCKED;
    if (result == CUDA_SUCCESS)
        result = make_standard_locked(place_of(location));
    if (result == CUDA_SUCCESS)
        *pool_out = (CUmemoryPool)place_of(location)->standard;
    return result;
}

CUresult client_cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location,
                                CUmemAllocationType type)
{
    CUresult result = cuda_pool_check_place(location, type);

    if (result == CUDA_SUCCESS && !cuda_pool_is_on_host(location))
        return client_cuDeviceGetMemPool(pool, location->id);
    PLACES_LOCKED;
    if (result == CUDA_SUCCESS)
        result = make_standard_locked(place_of(location));
    if (result == CUDA_SUCCESS)
        *pool = (CUmemoryPool)place_of(location)->current;
    return result;
}

CUresult client_cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type,
                                CUmemoryPool pool)
{
    CUresult result = cuda_pool_check_place(location, type);
    struct pool_sharing sharing;

    if (result == CUDA_SUCCESS && !cuda_pool_is_on_host(location))
        return client_cuDeviceSetMemPool(location->id, pool);
    if (result == CUDA_SUCCESS && (!pool_sharing_get(pool, &sharing) || sharing.device))
        result = CUDA_ERROR_INVALID_VALUE;
    PLACES_LOCKED;
    if (result == CUDA_SUCCESS)
        result = make_standard_locked(place_of(location));
    if (result == CUDA_SUCCESS)
        place_of(location)->current = (uint64_t)pool;
    return result;
}
