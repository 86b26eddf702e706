/* SPDX-License-Identifier: Apache-2.0 */
/* What the probe does with memory of each kind. Each act can be done again: what it has made the
 * first time is there, with its contents. */
#pragma once

#include "cuda_abi.h"

CUresult act_allocate(void);
CUresult act_pinned(void);
CUresult act_register(void);
CUresult act_share(void);
CUresult act_managed(void);
CUresult act_pool(void);
CUresult act_reserved(void);
CUresult act_unmapped(void);
