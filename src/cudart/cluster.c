/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the chip that each pair of SMs belongs to. cuBLASLt calls through this table without
 * checking that it got one. It accepts "not supported" and goes on without.
 */
#include "tables.h"

static CUresult get_topology(uint8_t **ret_clusters, void **ret_handle)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult release_handle(void *handle, int flags)
{
    return CUDA_SUCCESS;
}

const table_word cluster_table[17] = {
    [0] = TABLE_SIZE(17),      [1 ... 3] = UNKNOWN_SLOT, [4] = get_topology,
    [5 ... 12] = UNKNOWN_SLOT, [13] = release_handle,    [14 ... 16] = UNKNOWN_SLOT,
};
