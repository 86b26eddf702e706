/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the daemon as the status page reads it. */
#pragma once

#include <event2/buffer.h>
#include <stdbool.h>

#include "daemon.h"
#include "status_query.h"

/* Appends an object. Command lines are in it for an operator only. */
void state_json_add(struct evbuffer *out, const struct daemon *daemon,
                    const struct status_query *query, bool is_operator);
