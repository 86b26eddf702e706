/* SPDX-License-Identifier: Apache-2.0 */
/* Is this launch one that CUDA would take? Decided from attributes alone. */
#ifndef FUNNEL_LAUNCH_CHECK_H
#define FUNNEL_LAUNCH_CHECK_H

#include <stdint.h>

#include "cuda_abi.h"

/* Both arrays are indexed by their enumerations. CUDA's own answer, CUDA_SUCCESS included. */
CUresult launch_check(const CUlaunchConfig *config, const int32_t *function, const int32_t *device);

#endif
