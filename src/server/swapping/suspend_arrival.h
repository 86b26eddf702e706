/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a client that comes from another server. A client that was suspended there brings
 * a file of what it had, and is suspended here as well.
 */
#pragma once

#include <stdbool.h>

#include "session.h"

/* Any thread: whether memory is on its way from another server. An order to stand still waits
 * until all of it is here. */
bool suspend_arrival_is_awaited(const struct session *session);
