/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of a device as programs pass them around: sets of multiprocessors in the opaque bytes of a
 * CUdevResource. Nothing here knows a device or takes a lock.
 *
 * A cluster of more than two blocks runs on co-scheduled multiprocessors. They lie in aligned
 * groups of `scheduled`, and a part has those groups that a split has given it as a whole.
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
    uint16_t is_part;   /* it comes from a split, and is not to be split again */
    uint16_t unit;      /* the fewest that a part may have where co-scheduling is given up */
    uint16_t least;     /* the fewest otherwise */
    uint16_t scheduled; /* a part is a multiple of this where it is not given up */
    uint64_t sms[SM_SET_WORDS];
    uint64_t coscheduled[SM_SET_WORDS]; /* those of them that are in a whole co-scheduled group */
};

unsigned sm_set_count(const struct sm_set *set);

/* The multiprocessors from 0 up to `count`, SM_SET_MAX at most. The first `coscheduled` of them are
 * in whole co-scheduled groups. */
void sm_set_fill(struct sm_set *set, unsigned count, unsigned coscheduled);

/* How many of them a cluster of so many blocks may run on; 0 = it does not run in this part. */
unsigned sm_set_count_for_cluster(const struct sm_set *set, unsigned cluster_size);

void sm_set_to_resource(const struct sm_set *set, CUdevResource *ret_resource);

/* False when the resource is none of multiprocessors, or was written by something else. */
bool sm_set_from_resource(const CUdevResource *resource, struct sm_set *ret_set);

/* What cuDevSmResourceSplitByCount does, with its arguments. A group has all multiprocessors where
 * its size, rounded up, would be more. Where co-scheduling counts, each has a co-scheduled group.
 */
CUresult sm_set_split(CUdevResource *result, unsigned *groups, const CUdevResource *input,
                      CUdevResource *remaining, unsigned flags, unsigned least);

/* One set of several resources of one device. CUDA_ERROR_INVALID_RESOURCE_TYPE, or
 * CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION when they are of several devices. */
CUresult sm_set_join(const CUdevResource *resources, unsigned count, struct sm_set *ret_set);
