/* SPDX-License-Identifier: Apache-2.0 */
/* Words in memory that a stream writes or waits for. */
#pragma once

#include "client_stream.h"

/* Whether the device can do this batch: CUDA_SUCCESS or CUDA_ERROR_INVALID_VALUE. */
CUresult mem_ops_check(unsigned count, const CUstreamBatchMemOpParams *ops);

/* Puts a checked batch on a stream, which does not capture. */
CUresult mem_ops_on(struct stream *stream, unsigned count, const CUstreamBatchMemOpParams *ops);
