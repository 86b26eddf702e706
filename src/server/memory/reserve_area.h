/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address area of all clients' reservations (cuMemAddressReserve), reserved on demand. If each
 * window contained such an area, it would need the size of the largest demand, and there would be
 * few windows.
 *
 * Functions may be called from any thread, in a context.
 */
#pragma once

#include <pthread.h>
#include <stdint.h>

#include "device.h"
#include "ranges.h"

struct reserve_area {
    pthread_mutex_t lock;
    struct ranges used;  /* by clients' reservations */
    struct ranges slabs; /* reserved with the driver, for small reservations */
};

/* Before any other thread uses it. */
void reserve_area_init(struct reserve_area *area);

/* After all other threads. Addresses that are still reserved end with the context. */
void reserve_area_fini(struct reserve_area *area);

/* How many bytes of addresses one client may reserve. */
uint64_t reserve_area_limit(const struct devices *devices);

/* Where reservations of a client begin, by the number of its window. They are far from those of
 * other clients, so that a client which comes late from another server finds its addresses free. */
uint64_t reserve_area_start(unsigned window);

/* Reserves `size` bytes of addresses, at `from` or at the next free place behind it if there is
 * one, else anywhere in the area. CUDA_ERROR_OUT_OF_MEMORY when no place is free. */
CUresult reserve_area_take(struct reserve_area *area, uint64_t from, uint64_t size,
                           uint64_t alignment, uint64_t *ret_address);

/* Releases a whole reservation. */
void reserve_area_give_back(struct reserve_area *area, uint64_t address, uint64_t size);
