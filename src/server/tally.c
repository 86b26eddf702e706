/* SPDX-License-Identifier: Apache-2.0 */
/* A stack of the words that are free. */
#include "tally.h"

#include <stdint.h>
#include <stdlib.h>

#include "cleanup.h"
#include "loader.h"

/* Streams beyond this many do without. */
#define TALLIES 16384u

struct tallies {
    pthread_mutex_t lock;
    CUdeviceptr base;
    unsigned count; /* of those that are free */
    uint16_t free[TALLIES];
};

_Static_assert(TALLIES - 1 <= UINT16_MAX, "each has its number");

struct tallies *tallies_create(void)
{
    struct tallies *tallies = calloc(1, sizeof(*tallies));

    if (!tallies)
        return NULL;
    if (!driver.cuMemAlloc_v2 ||
        driver.cuMemAlloc_v2(&tallies->base, TALLIES * sizeof(uint32_t)) != CUDA_SUCCESS) {
        free(tallies);
        return NULL;
    }
    pthread_mutex_init(&tallies->lock, NULL);
    for (unsigned i = 0; i < TALLIES; i++)
        tallies->free[tallies->count++] = (uint16_t)(TALLIES - 1 - i);
    return tallies;
}

void tallies_destroy(struct tallies *tallies)
{
    if (!tallies)
        return;
    driver.cuMemFree_v2(tallies->base);
    pthread_mutex_destroy(&tallies->lock);
    free(tallies);
}

CUdeviceptr tallies_take(struct tallies *tallies)
{
    if (!tallies)
        return 0;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&tallies->lock);
    return tallies->count ? tallies->base + sizeof(uint32_t) * tallies->free[--tallies->count] : 0;
}

void tallies_put_back(struct tallies *tallies, CUdeviceptr tally)
{
    if (!tallies || !tally)
        return;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&tallies->lock);
    tallies->free[tallies->count++] = (uint16_t)((tally - tallies->base) / sizeof(uint32_t));
}
