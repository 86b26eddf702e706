/* SPDX-License-Identifier: Apache-2.0 */
/* The real driver, to which calls go when there is no server. */
#pragma once

#include "cuda_abi.h"

/* The id of an export table that only this library has. */
extern const CUuuid passthrough_signature;

/* Finds and loads the driver, and fills the table of its entry points: 0, or -ENOENT when there is
 * none. Called once, under the lock of client_decide(). */
int passthrough_open(void);

/* Calls that are made before the mode is decided, which the generated entry points therefore do not
 * pass on. From any thread; they return the driver's result. */
CUresult passthrough_init(unsigned flags);
CUresult passthrough_driver_version(int *ret_version);
CUresult passthrough_get_export_table(const void **ret_table, const CUuuid *id);
