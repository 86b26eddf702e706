/* SPDX-License-Identifier: Apache-2.0 */
/* A stack of free counters. */
#include "fence_counter.h"

#include <stdint.h>
#include <stdlib.h>

#include "cleanup.h"
#include "loader.h"

/* Streams beyond this many have no counter. */
#define COUNTERS 16384u

struct fence_counters {
    pthread_mutex_t lock;
    CUdeviceptr base;
    unsigned count; /* of free ones */
    uint16_t free[COUNTERS];
};

_Static_assert(COUNTERS - 1 <= UINT16_MAX, "each has its number");

struct fence_counters *fence_counters_create(void)
{
    struct fence_counters *fence_counters = calloc(1, sizeof(*fence_counters));

    if (!fence_counters)
        return NULL;
    if (!driver.cuMemAlloc_v2 ||
        driver.cuMemAlloc_v2(&fence_counters->base, COUNTERS * sizeof(uint32_t)) != CUDA_SUCCESS) {
        free(fence_counters);
        return NULL;
    }
    pthread_mutex_init(&fence_counters->lock, NULL);
    for (unsigned i = 0; i < COUNTERS; i++)
        fence_counters->free[fence_counters->count++] = (uint16_t)(COUNTERS - 1 - i);
    return fence_counters;
}

void fence_counters_destroy(struct fence_counters *fence_counters)
{
    if (!fence_counters)
        return;
    driver.cuMemFree_v2(fence_counters->base);
    pthread_mutex_destroy(&fence_counters->lock);
    free(fence_counters);
}

CUdeviceptr fence_counters_take(struct fence_counters *fence_counters)
{
    if (!fence_counters)
        return 0;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&fence_counters->lock);
    return fence_counters->count
               ? fence_counters->base +
                     sizeof(uint32_t) * fence_counters->free[--fence_counters->count]
               : 0;
}

void fence_counters_put_back(struct fence_counters *fence_counters, CUdeviceptr fence_counter)
{
    if (!fence_counters || !fence_counter)
        return;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&fence_counters->lock);
    fence_counters->free[fence_counters->count++] =
        (uint16_t)((fence_counter - fence_counters->base) / sizeof(uint32_t));
}
