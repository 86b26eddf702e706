/* SPDX-License-Identifier: Apache-2.0 */
/* What a client had used at some time, as far as early_report.h compares it. */
#pragma once

#include <stdint.h>

struct usage_mark {
    uint64_t busy_ns, shared_ns; /* sums of gpu_ns and shared_ns of struct server_usage */
    uint64_t launches;
};
