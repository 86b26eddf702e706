/* SPDX-License-Identifier: Apache-2.0 */
/* Whether CUDA would accept a launch, decided from attributes alone. */
#pragma once

#include <stdint.h>

#include "cuda_abi.h"

/* The result that CUDA's launch would have. `function` is indexed by CUfunction_attribute, `device`
 * by CUdevice_attribute. Pure. */
CUresult launch_check(const CUlaunchConfig *config, const int32_t *function, const int32_t *device);
