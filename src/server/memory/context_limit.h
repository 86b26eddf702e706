/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of contexts (cuCtxSetLimit). All clients share the context: a limit that one client raises
 * applies to all, and stays until no client is left.
 */
#pragma once

#include <stdbool.h>

#include "server.h"

/* There are no clients: restores the initial limits. False when a client has come, or a stream
 * waits for a value. The device's context is current. */
bool context_limits_restore(struct server *server, const struct device *device);
