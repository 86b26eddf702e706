/* SPDX-License-Identifier: Apache-2.0 */
/* What the recovery probe can be told to do with variables of its code. */
#pragma once

#include "cuda_abi.h"

/* CUDA_ERROR_NOT_FOUND for other words, CUDA_ERROR_UNKNOWN when a variable holds something else
 * than it should. */
CUresult variable_act(const char *word);
