/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of a device as programs pass them around: sets of multiprocessors in the opaque bytes of a
 * CUdevResource. Nothing here knows a device or takes a lock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cuda_structs.h"

#define SM_SET_WORDS 4
#define SM_SET_MAX (64u * SM_SET_WORDS)

/* Multiprocessors of one device, by number. */
struct sm_set {
    uint32_t device;
    uint32_t is_part;   /* it comes from a split, and is not to be split again */
    uint32_t unit;      /* the fewest that a part may have where co-scheduling is given up */
    uint32_t least;     /* the fewest otherwise */
    uint32_t scheduled; /* a part is a multiple of this where it is not given up */
    uint64_t sms[SM_SET_WORDS];
};

unsigned sm_set_count(const struct sm_set *set);

/* The multiprocessors from 0 up to `count`, which is SM_SET_MAX at most. */
void sm_set_fill(struct sm_set *set, unsigned count);

void sm_set_to_resource(const struct sm_set *set, CUdevResource *ret_resource);

/* False when the resource is none of multiprocessors, or was written by something else. */
bool sm_set_from_resource(const CUdevResource *resource, struct sm_set *ret_set);

/* What cuDevSmResourceSplitByCount does, with its arguments. A group has all multiprocessors where
 * its size, rounded up, would be more. */
CUresult sm_set_split(CUdevResource *result, unsigned *groups, const CUdevResource *input,
                      CUdevResource *remaining, unsigned flags, unsigned least);

/* One set of several resources of one device. CUDA_ERROR_INVALID_RESOURCE_TYPE, or
 * CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION when they are of several devices. */
CUresult sm_set_join(const CUdevResource *resources, unsigned count, struct sm_set *ret_set);
