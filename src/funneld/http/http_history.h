/* SPDX-License-Identifier: Apache-2.0 */
/* The time lines of the status page: usage_history.h as JSON. */
#pragma once

#include <event2/buffer.h>

#include "usage_history.h"

/* Appends an object: `period` of a sample in seconds, `gpus` by UUID, and `programs` by serial
 * number with who they are. The `samples` are those that ended after `since`, the oldest first:
 * [time, [[program, gpu, multiprocessors, bytes], ...]]. Program 0 stands for those that are not
 * told apart. */
void http_history_add(struct evbuffer *out, enum history_range range, double since);
