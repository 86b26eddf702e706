/* SPDX-License-Identifier: Apache-2.0 */
/* What a program says of a mark or a range of NVTX. The attributes may be NULL, or those of an
 * older NVTX. */
#pragma once

#include "nvtx_call.h"

/* The name lives as long as the program's, and `buffer`. */
const char *nvtx_message(const struct nvtx_attributes *attributes, struct nvtx_name *buffer);

/* Color, category and payload, in `data`; NULL: the program gives no attributes. */
const struct profiler_mark_data *nvtx_describe(const struct nvtx_attributes *attributes,
                                               struct profiler_mark_data *data);
