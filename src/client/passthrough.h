/* SPDX-License-Identifier: Apache-2.0 */
/* The real driver, for when there is no server. */
#pragma once

#include "cuda_abi.h"

/* The id of an export table that only this library has. */
extern const CUuuid passthrough_signature;

/* Finds and loads it, and fills the table of its entry points: 0, or -ENOENT when there is none. */
int passthrough_open(void);

/* Early calls, which the generated entry points do not pass on themselves. */
CUresult passthrough_init(unsigned flags);
CUresult passthrough_driver_version(int *ret_version);
CUresult passthrough_get_export_table(const void **ret_table, const CUuuid *id);
