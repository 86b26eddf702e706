/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that a graph has allocated, and that cuMemFree or cuMemFreeAsync frees. */
#pragma once

#include "client_stream.h"

/* True when the address is such memory: *ret_result is what the call returns. It is free behind all
 * that is on the stream; without a stream (NULL) nothing uses it any more. */
bool graph_memory_takes_free(CUdeviceptr address, struct stream *stream, CUresult *ret_result);
