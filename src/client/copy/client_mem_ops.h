/* SPDX-License-Identifier: Apache-2.0 */
/* Words in memory that a stream writes or waits for. */
#pragma once

#include "client_stream.h"

/* Could the device do this? */
CUresult mem_ops_check(unsigned count, const CUstreamBatchMemOpParams *ops);

/* cuStreamBatchMemOp, for a batch that was checked and is not to be captured. */
CUresult mem_ops_on(struct stream *stream, unsigned count, const CUstreamBatchMemOpParams *ops);
