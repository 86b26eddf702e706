/* SPDX-License-Identifier: Apache-2.0 */
/* Points in time as people give them: "7d" ago, or a day. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* "90m", "12h", "7d" or "2w" before `now`, or the local midnight with which "2026-11-01" begins, in
 * seconds since the epoch. False for anything else. */
bool usage_time_parse(const char *text, int64_t now, int64_t *ret_time);
