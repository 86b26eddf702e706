/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one client may hold of things that all clients of a server share, beside its limits of
 * device memory and multiprocessors. One table has all of them, with the names by which an operator
 * changes them: FUNNEL_QUOTAS="host-memory=8G,ranges=4096".
 */
#pragma once

#include <stdint.h>

enum quota {
    QUOTA_HOST_MEMORY, /* bytes of page-locked memory */
    QUOTA_RANGES, /* granules, mappings, imports and variables; each may be a descriptor here */
    QUOTA_WAITS,  /* cuStreamWaitValue that no value has ended yet */
    QUOTA_COUNT,
};

/* Fills the table: half of the machine's memory for host memory, an eighth of the descriptors that
 * this process may have for ranges, and then what `changes` says, which may be NULL. 0, or -EINVAL
 * and the table as it was, with the part of `changes` that is wrong in the log. Before there are
 * clients. */
int quotas_init(const char *changes);

/* From any thread. */
uint64_t quota(enum quota which);

/* "host-memory". */
const char *quota_name(enum quota which);
