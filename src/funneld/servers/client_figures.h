/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the figures that a server reports of a client can be true. No client has used a device
 * for longer than it has been there, or more memory than the device has. What cannot be is cut to
 * the most that can.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "server_protocol.h"

struct client_bounds {
    const struct server_ready *ready; /* the devices of the server */
    uint64_t elapsed_ns;              /* since it got the client */
};

/* Both: whether the times, or the bytes, were possible as they came. */
bool client_usage_bound(struct server_usage *usage, const struct client_bounds *bounds);
bool client_memory_bound(uint64_t bytes[SERVER_MAX_DEVICES], const struct client_bounds *bounds);
