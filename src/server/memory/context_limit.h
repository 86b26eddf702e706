/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of contexts (cuCtxSetLimit). The context is everybody's: what one client wants is granted
 * to all, and stays until nobody is left.
 */
#pragma once

#include <stdbool.h>

#include "server.h"

/* There are no clients: the limits are again what they were at the start. False when there are some
 * after all. The device's context is current. */
bool context_limits_restore(struct server *server, const struct device *device);
