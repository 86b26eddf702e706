/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients without a line of their own in usage.jsonl are added up, a sum for each user and each set
 * of devices. Clients of subordinate users count for their user. So programs that a user starts
 * without end, or a disk that is full for long, cost the journal details. They cost it no seconds
 * of a GPU.
 */
#pragma once

#include "usage_line.h"

/* False when there is no space for another sum. */
bool usage_sums_add(const struct usage_line *line);

/* Has `write` write a line for each sum that has grown for ten minutes, or with `all` for each one.
 * Forgets those for which it returned 0. Returns how many clients are in the others of these. */
unsigned usage_sums_write(bool all, int (*write)(void *context, struct evbuffer *line),
                          void *context);
