/* SPDX-License-Identifier: Apache-2.0 */
/* A function whose address is in memory from one kernel to the next. */
#pragma once

#include "cuda_abi.h"

/* The first call has a kernel store the address; each one has another kernel call it there.
 * CUDA_ERROR_UNKNOWN when that was another function. */
CUresult pointer_act(void);
