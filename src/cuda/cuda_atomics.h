/* SPDX-License-Identifier: Apache-2.0 */
/* Atomic operations of a device on memory that is not its own. */
#pragma once

#include "cuda_abi.h"

/* Answers a question about some operations from all that is known, CUatomicOperationCapability
 * flags for each CUatomicOperation. CUDA_ERROR_INVALID_VALUE for no question, or for operations
 * that are none; then nothing is written. */
CUresult cuda_atomics_tell(const unsigned known[CU_ATOMIC_OPERATION_MAX],
                           const CUatomicOperation *operations, unsigned count,
                           unsigned *ret_capabilities);
