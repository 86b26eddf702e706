/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of the records: CLOCK_REALTIME in nanoseconds, or a clock of the program's. */
#pragma once

#include "cupti_abi.h"

/* What the clock says now. */
uint64_t cupti_clock_now(void);

/* What it said at a time of CLOCK_MONOTONIC, which is now or not long ago. From any thread. */
uint64_t cupti_clock_at(uint64_t monotonic_ns);

/* Takes the program's clock from now on; NULL = CLOCK_REALTIME. It must advance evenly. */
void cupti_clock_set(cupti_timestamp clock);

void cupti_clock_after_fork(void);
