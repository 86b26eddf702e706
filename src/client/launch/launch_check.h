/* SPDX-License-Identifier: Apache-2.0 */
/* Whether CUDA would accept a launch, decided from attributes alone. */
#pragma once

#include <stdint.h>

#include "cuda_abi.h"

/* Both arrays are indexed by their enumerations. CUDA's own answer, CUDA_SUCCESS included. */
CUresult launch_check(const CUlaunchConfig *config, const int32_t *function, const int32_t *device);
