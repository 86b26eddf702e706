/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program has advised about managed memory, for each page of an allocation, and where it has
 * prefetched it to. The caller acts on the advice.
 *
 * Offsets and sizes are bytes from the start of the allocation. A range is all of the pages that it
 * overlaps, and lies in the allocation. The functions take no lock: the caller guards the advice.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cuda_abi.h"

struct cuda_advice;

/* Nothing was advised about an allocation of `size` bytes; NULL = no memory. */
struct cuda_advice *cuda_advice_create(uint64_t size);
void cuda_advice_destroy(struct cuda_advice *advice);

/* Takes advice down. CUDA_ERROR_INVALID_VALUE for unknown advice, CUDA_ERROR_OUT_OF_MEMORY, or what
 * cuda_location_check() says; then nothing has changed. */
CUresult cuda_advice_take(struct cuda_advice *advice, uint64_t offset, uint64_t size,
                          CUmem_advise what, CUmemLocation location, int device_count);

/* Takes down where a range was prefetched to. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult cuda_advice_prefetched(struct cuda_advice *advice, uint64_t offset, uint64_t size,
                                CUmemLocation location);

/* Writes one attribute of a range, as cuMemRangeGetAttribute does: what all of its pages have in
 * common. CUDA_ERROR_INVALID_VALUE for an unknown one, or for a size in bytes that is not the
 * attribute's. */
CUresult cuda_advice_get(const struct cuda_advice *advice, uint64_t offset, uint64_t size,
                         CUmem_range_attribute attribute, void *ret_data, size_t data_size);
