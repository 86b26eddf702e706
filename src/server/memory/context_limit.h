/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of contexts (cuCtxSetLimit). All clients share the context: what one client asks for is
 * granted to all, and stays until no client is left.
 */
#pragma once

#include <stdbool.h>

#include "server.h"

/* There are no clients: sets the limits to what they were at the start. False when a client has
 * come, or a stream waits for a value. The device's context is current. */
bool context_limits_restore(struct server *server, const struct device *device);
