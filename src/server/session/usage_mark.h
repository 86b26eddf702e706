/* SPDX-License-Identifier: Apache-2.0 */
/* What early_report.h keeps from one report of usage to the next. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What a client had used. */
struct usage_mark {
    uint64_t busy_ns, shared_ns; /* sums of gpu_ns and shared_ns of struct server_usage */
    uint64_t launches;
};

/* What the server has told. */
struct report_pace {
    unsigned beats;  /* heartbeats since the last report */
    uint64_t at;     /* clock_ns() of the last report */
    bool told_signs; /* that one told of a client that may wait */
    bool told_begin; /* it told what such a client had used before */
};
