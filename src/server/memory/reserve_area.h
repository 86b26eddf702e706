/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The area: addresses that all clients' reservations (cuMemAddressReserve) come from, on demand. A
 * part of every window would have to be as large as the greediest program wants it, and there would
 * be room for few windows.
 */
#pragma once

#include <pthread.h>
#include <stdint.h>

#include "device.h"
#include "ranges.h"

struct reserve_area {
    pthread_mutex_t lock;
    struct ranges used;  /* by clients */
    struct ranges slabs; /* that the driver has reserved for small ones */
};

void reserve_area_init(struct reserve_area *area);

/* How many addresses one client may have, so that none eats the area. */
uint64_t reserve_area_limit(const struct devices *devices);

/* Reserves `size` addresses with the driver, at `from` or at the next free place behind it, if
 * there is one, else anywhere in the area. CUDA_ERROR_OUT_OF_MEMORY when there is none. */
CUresult reserve_area_take(struct reserve_area *area, uint64_t from, uint64_t size,
                           uint64_t alignment, uint64_t *ret_address);

/* Gives back exactly what was taken. */
void reserve_area_give_back(struct reserve_area *area, uint64_t address, uint64_t size);
