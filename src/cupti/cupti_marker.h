/* SPDX-License-Identifier: Apache-2.0 */
/* Records of marks and ranges that the program sets with NVTX. */
#pragma once

#include "profiler_interface.h"

/* From any thread. A range that began while its kind was off has no record of its end. */
void cupti_marker_append(const struct profiler_mark *mark);

void cupti_marker_after_fork(void);
